"""What a child has printed: its end, and its first MiB in a file, to which it is appended."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from ..files.safe_files import open_plain, write_all

LOG_CAP_BYTES = 1 << 20
TAIL_BYTES = 4096


class WorkerLog:
    """Filled by one thread and given a file by another.

    A file that cannot be written is left out: the run goes on, and `failure` says why.
    """

    def __init__(self) -> None:
        self.tail = b""
        self.failure: str | None = None
        self._name = ""
        self._lock = Lock()
        self._fd = -1
        self._early = bytearray()  # until there is a file
        self._left_bytes = LOG_CAP_BYTES

    def add(self, printed: bytes) -> None:
        self.tail = (self.tail + printed)[-TAIL_BYTES:]
        kept = printed[: self._left_bytes]
        self._left_bytes -= len(kept)
        with self._lock, self._noted():
            if self._fd >= 0:
                write_all(self._fd, kept)
            else:
                self._early += kept

    def open(self, path: Path) -> None:
        """Append to this file, beginning with what was printed before."""
        with self._lock, self._noted():
            self._name = path.name
            fd = open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            self._fd, early, self._early = fd, bytes(self._early), bytearray()
            write_all(fd, early)

    @contextmanager
    def _noted(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.failure = self.failure or f"{self._name}: {error.strerror}"

    def close(self) -> None:
        """Safe to call twice."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
            self._fd = -1
