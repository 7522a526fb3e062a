"""Processes below one, and the run that a worker works for. Imports nothing of ours."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

RUN = "ATTNBENCH_RUN"
"""In a worker's environment: the process of the run."""


def run_pid() -> int:
    """The process that this worker works for; in another process its parent."""
    return int(os.environ.get(RUN) or os.getppid() or os.getpid())


def descendants(root: int) -> Iterator[int]:
    """Processes below this one, from parents to children."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            # The program's name stands in brackets before the state and may hold anything.
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    below = [root]
    for pid in below:
        found = children.get(pid, [])
        below += found
        yield from found
