"""Launches that have not returned, noted on disk.

A kernel that hangs or breaks the GPU's context takes its process with it, and the next process must
not begin with the same one.
"""

import json
import os
import socket
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from types import TracebackType

import torch

from .launch_notes import folder, read_note

HUNG_S = 30.0
"""Launches take milliseconds; a process that a hanging GPU holds cannot always be ended."""


class Attempt:
    """A context around launches of one kernel until the GPU has finished them.

    Its note, a file (launch_notes.py), stays if the process dies meanwhile, or if the context of
    the GPU is broken afterwards. It holds for this very code on this kind of GPU.
    """

    def __init__(self, code: str, device: torch.device, launch: str) -> None:
        """`code`: the hash of the compiled kernel. `launch`: what it is, for a reader."""
        self.device, self.launch = device, launch
        key = f"{code} {torch.cuda.get_device_name(device)}"
        name = f"{sha256(key.encode()).hexdigest()[:32]}.json"
        self.note = folder() / name

    def __enter__(self) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        process = {"pid": os.getpid(), "host": socket.gethostname(), "started_utc": now}
        with suppress(OSError):  # a full disk: the next process tries it again
            self.note.parent.mkdir(parents=True, exist_ok=True)
            self.note.write_text(json.dumps({**process, "launch": self.launch}))

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if not (isinstance(error, Exception) and is_broken(self.device)):
            self.note.unlink(missing_ok=True)

    def unreturned(self) -> str | None:
        """Why not to launch it: an earlier process did, and it did not return."""
        try:
            noted = read_note(self.note)
            when = noted["started_utc"]
            age_s = (datetime.now(UTC) - datetime.fromisoformat(when)).total_seconds()
            runs = age_s < HUNG_S and _is_alive(noted["pid"])
            if noted["host"] != socket.gethostname() or runs:
                return None  # another GPU's, or it is about to return
        except (ValueError, KeyError, TypeError):
            return None
        return f"its launch of {when} hung or broke the GPU's context; delete {self.note} to retry"


def is_broken(device: torch.device) -> bool:
    """Whether every further CUDA call fails, as after an illegal address."""
    try:
        torch.cuda.synchronize(device)
    except RuntimeError:
        return True
    return False


def _is_alive(pid: int) -> bool:
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
