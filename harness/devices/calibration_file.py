"""calibration.jsonl: append a calibration, find the newest one of a device.

Imports no torch: a run reads it in the parent process.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..files.errors import option, unless_refused
from ..files.safe_files import append_lines, lines_of, opened

FILE = "calibration.jsonl"
SCHEMA = 1
CAP_BYTES = 64 << 20


def append_line(path: Path, line: Mapping[str, Any] | None) -> None:
    """One more line, also of what else is known of a machine; earlier ones stay. None: see that it
    could be written, before minutes of measuring. Raises BadInput.
    """
    text = "" if line is None else json.dumps(line, allow_nan=False) + "\n"
    elsewhere = f"choose another with {option('runs', 'DIR')}"
    with unless_refused(path.parent, elsewhere, f"cannot write {path.name} here"):
        path.parent.mkdir(parents=True, exist_ok=True)
        append_lines(path, text)


def newest_calibration(
    root: Path, device_uuid: str | None, device_name: str | None
) -> dict[str, Any] | None:
    """The last line for this GPU or, without a UUID, for a CPU of this name; None if none."""
    newest = None
    with suppress(OSError), opened(root / FILE) as file:
        for line in lines_of(file, CAP_BYTES):
            with suppress(ValueError, RecursionError):  # torn, or not ours
                found = json.loads(line)
                if _is_of(found, device_uuid, device_name):
                    newest = found
    return newest


def why_unreadable(root: Path) -> str:
    """Why the file of calibrations cannot be read; "" if it can, or if there is none."""
    try:
        opened(root / FILE).close()
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{root / FILE}: cannot be read ({error.strerror})"
    return ""


def _is_of(found: Any, device_uuid: str | None, device_name: str | None) -> bool:
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        return False
    uuid, name = found.get("device_uuid"), found.get("device_name")
    same = (
        uuid == device_uuid if device_uuid else device_name and (uuid, name) == (None, device_name)
    )
    return bool(same) and {"peaks", "checks", "utc"} <= found.keys()
