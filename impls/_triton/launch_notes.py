"""Notes on disk of launches that have not returned: where they are, and what one says of a process
that was killed. Imports neither torch nor triton, so that the parent of a run can read them.
"""

import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def folder() -> Path:
    """In the user's cache, not in Triton's: torch.compile moves that while a process runs."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("ATTNBENCH_CACHE") or Path(home) / "attnbench") / "launched"


def read_note(path: Path) -> Mapping[str, Any]:
    """Empty if there is none, or none that is whole."""
    try:
        noted = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return noted if isinstance(noted, dict) else {}


def unreturned(pid: int) -> str:
    """The launch of this process on this host that has not returned: `grad_q of Config(...)`; ""
    without one.
    """
    of_process = (pid, socket.gethostname())
    notes = map(read_note, folder().glob("*.json"))
    found = [one for one in notes if (one.get("pid"), one.get("host")) == of_process]
    newest = max(found, key=lambda one: str(one.get("started_utc")), default={})
    return str(newest.get("launch", ""))
