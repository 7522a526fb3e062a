"""attnbench, which sends itself a signal at its Nth step; a step changes files or processes.

    python -P dies_at_step.py N SIGNAL BYTES ARGUMENTS...

BYTES: how much of a write gets to the file before the signal, where the step is a write.
"""

import os
import runpy
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHANGES = frozenset(
    {
        *("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.symlink"),
        *("os.link", "os.chmod", "subprocess.Popen", "fcntl.flock"),
    }
)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Steps:
    """Counts what this process does; `path`: files elsewhere do not count."""

    def __init__(self, step: int, number: int, most_bytes: int, path: str) -> None:
        self.left = step
        self.number = number
        self.most_bytes = most_bytes
        self.path = path
        self._write, self._sync = os.write, os.fdatasync

    def install(self) -> None:
        sys.addaudithook(self.audit)
        os.write = self.write
        os.fdatasync = self.counted(self._sync)
        os.fsync = self.counted(os.fsync)

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        opened = event == "open" and self.is_ours(arguments[0], arguments[2])
        if opened or event in CHANGES:
            self.take()

    def is_ours(self, path: object, flags: object) -> bool:
        is_written = isinstance(flags, int) and bool(flags & WRITING)
        return is_written and isinstance(path, str) and self.path in str(Path(path).absolute())

    def write(self, fd: int, data: bytes, /) -> int:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return self._write(fd, data)
        if self.left == 1:  # a signal may be handled: what is left of the write comes after it
            written = self._write(fd, bytes(data)[: self.most_bytes])
            self.take()
            return written
        self.take()
        return self._write(fd, data)

    def counted(self, function: Callable[[int], None]) -> Callable[[int], None]:
        def call(fd: int) -> None:
            self.take()
            function(fd)

        return call

    def take(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), self.number)


if __name__ == "__main__":
    step, number, most_bytes = map(int, sys.argv[1:4])
    sys.argv = ["attnbench", *sys.argv[4:]]
    steps = Steps(step, number, most_bytes, str(Path.cwd()))
    steps.install()
    try:
        runpy.run_module("attnbench", run_name="__main__")
    finally:
        sys.stderr.write(f"steps: {step - steps.left}\n")
