"""Reads telemetry.jsonl (docs/format.md) as a table with one row per sample, in file order.

Telemetry is optional: lines that cannot be read are skipped and counted.
"""

import json
import os
import re
from collections.abc import Iterator
from math import inf, isfinite
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from .read import open_file

TELEMETRY = "telemetry.jsonl"
NUMBERED = re.compile(r"telemetry-([1-9]\d{0,5})(?:-([1-9]\d{0,5}))?\.jsonl", re.ASCII)
LINE_CAP_BYTES = 1 << 16  # a sample has about 300
_TEXT, _COUNT, _MASK, _NUMBER = "string[python]", "Int64", "UInt64", "float64"
COLUMNS = {
    "kind": _TEXT,
    "t_ns": _COUNT,
    **dict.fromkeys(("utc", "what"), _TEXT),
    **dict.fromkeys(("sm_clock_mhz", "memory_clock_mhz", "temperature_c", "power_w"), _NUMBER),
    "clock_event_mask": _MASK,  # its highest bit has a meaning: "unknown"
    "device_used_bytes": _COUNT,
    **dict.fromkeys(("kernel_busy_ratio", "cpu_ratio", "cpu_clock_mhz"), _NUMBER),
    **dict.fromkeys(("resident_bytes", "host_used_bytes"), _COUNT),
}
MOST = {_COUNT: (1 << 63) - 1, _MASK: (1 << 64) - 1}


def telemetry_files(run: Path, part: str = "shard") -> dict[str, str]:
    """The files of a run's samples by name, each with whose they are: "", or a shard's of a run
    that was merged, or a device's of a run on several, or of a shard's: their clocks differ.
    """
    found = {TELEMETRY: ""} if os.path.lexists(run / TELEMETRY) else {}
    numbered = filter(None, (NUMBERED.fullmatch(one.name) for one in run.glob("telemetry-*.jsonl")))
    return found | {
        one[0]: f"{part} {one[1]}" + (f", device {one[2]}" if one[2] else "")
        for one in sorted(numbered, key=lambda one: (int(one[1]), int(one[2] or 0)))
    }


def telemetry(run: Path, name: str = TELEMETRY) -> pd.DataFrame:
    """All samples of a file in a run's folder; empty without it.

    `attrs`: `skipped`, the number of skipped lines; `uuid`, `period_s`, `board_wide` of the last
    header; `missing` (name: reason) of all headers. Raises BadRun if it is not a plain file.
    """
    samples: list[dict[str, Any]] = []
    facts: dict[str, Any] = {
        "skipped": 0,
        "uuid": None,
        "period_s": None,
        "board_wide": [],
        "missing": {},
    }
    kind = None
    file = open_file(run / name)
    for line in _lines(file) if file else ():
        document = _object(line)
        if document and _is_header(document):
            kind = document["kind"]
            facts["missing"].update(document["missing"])
            facts.update({name: document[name] for name in ("uuid", "period_s", "board_wide")})
        elif document and _is_sample(document):
            samples.append({**{name: document.get(name) for name in COLUMNS}, "kind": kind})
        else:
            facts["skipped"] += 1
    frame = pd.DataFrame(
        {
            name: pd.Series([sample[name] for sample in samples], dtype=dtype)
            for name, dtype in COLUMNS.items()
        }
    )
    frame.attrs.update(facts)
    return frame


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Whole lines; an empty one for each line that is too long or torn."""
    with file:
        while line := file.readline(LINE_CAP_BYTES):
            whole = line.endswith(b"\n")
            while line and not line.endswith(b"\n"):
                line = file.readline(LINE_CAP_BYTES)
            yield line if whole else b""


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _is_header(document: dict[str, Any]) -> bool:
    missing, board_wide, period_s = (
        document.get("missing"),
        document.get("board_wide"),
        document.get("period_s"),
    )
    return (
        document.get("kind") in ("gpu", "host")
        and isinstance(document.get("uuid"), str | None)
        and (isinstance(period_s, int | float) and 0 < period_s < inf)
        and (
            isinstance(missing, dict)
            and all(isinstance(reason, str) for reason in missing.values())
        )
        and (isinstance(board_wide, list) and all(isinstance(name, str) for name in board_wide))
    )


def _is_sample(document: dict[str, Any]) -> bool:
    present = all(document.get(name) is not None for name in ("t_ns", "utc", "what"))
    return (
        present
        and "kind" not in document
        and all(_fits(document.get(name), dtype) for name, dtype in COLUMNS.items())
    )


def _fits(value: Any, dtype: str) -> bool:
    if value is None:
        return True
    if dtype == _TEXT:
        return isinstance(value, str)
    if dtype == _NUMBER:
        return type(value) in (int, float) and abs(value) < 1e300 and isfinite(value)
    return type(value) is int and 0 <= value <= MOST[dtype]
