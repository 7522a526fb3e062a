"""What a child prints: its end, and its first MiB in a file, to which it is appended."""

import os
from pathlib import Path
from threading import Lock, Thread

from ..files.safe_files import open_plain, write_all

LOG_CAP_BYTES = 1 << 20
TAIL_BYTES = 4096
ENDS_S = 2.0  # for what is printed to arrive, once nobody prints any more


class WorkerLog:
    """Read from a pipe in a thread of its own, so that the child never blocks; given a file later.

    A file that cannot be written is left out: the run goes on, and its `failures` say why.
    """

    def __init__(self, fd: int) -> None:
        self._tail = b""
        self._early = b""  # until there is a file
        self._left_bytes = LOG_CAP_BYTES
        self._file, self._failures = -1, list[str]()
        self._name = ""
        self._lock = Lock()
        self._thread = Thread(target=self._read, args=(fd,), daemon=True)
        self._thread.start()

    def tail(self, wait_s: float = 0.5) -> str | None:
        """The end of what the child printed."""
        self._thread.join(wait_s)
        return self._tail.decode(errors="replace") or None

    def open(self, path: Path, failures: list[str]) -> None:
        """Append to this file, beginning with what was printed before."""
        with self._lock:
            self._name, self._failures = path.name, failures
            try:
                self._file = open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            except OSError as error:
                self._fail(error)
            self._write(self._early)

    def close(self) -> None:
        """Safe to call twice."""
        self._thread.join(ENDS_S)
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
            self._file = -1

    def _read(self, fd: int) -> None:
        with open(fd, "rb", buffering=0) as pipe:
            while printed := pipe.read(1 << 16):
                self._tail = (self._tail + printed)[-TAIL_BYTES:]
                kept = printed[: self._left_bytes]
                self._left_bytes -= len(kept)
                with self._lock:
                    if self._name:
                        self._write(kept)
                    else:
                        self._early += kept

    def _write(self, data: bytes) -> None:
        if self._file >= 0:
            try:
                write_all(self._file, data)
            except OSError as error:
                self._fail(error)

    def _fail(self, error: OSError) -> None:
        self._failures.append(f"{self._name}: {error.strerror}")
        self._left_bytes = 0
