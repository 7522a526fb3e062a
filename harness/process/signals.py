"""SIGINT, SIGTERM and SIGHUP end a run in order."""

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Self

from .worker_process import Interrupted

RESUME = "attnbench run --resume latest continues with what was saved"


class Signals:
    """The first signal is noticed while waiting for a worker, never in the middle of a write.

    A second signal ends the process at once, also when the run has ended and the program has not.
    `embedded`: in a process that goes on after the run a second
    signal is ignored while the first one ends the run.
    Python delivers signals to the main thread only; in another thread none is noticed. A signal
    that is ignored stays ignored: nohup does that to SIGHUP, a shell to SIGINT of a background job.
    """

    NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self, *, embedded: bool = False) -> None:
        self.embedded = embedded
        self.received: int | None = None
        self.second: Callable[[], None] = lambda: None
        self.wake_fd, self._write_fd = os.pipe()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            ours = [n for n in self.NUMBERS if signal.getsignal(n) not in (signal.SIG_IGN, None)]
            self._before = {n: signal.signal(n, self._handle) for n in ours}
        return self

    def __exit__(self, *_: object) -> None:
        if self.received is None or self.embedded:
            # else the program is about to end, and `_handle` knows its exit code
            for number, handler in self._before.items():
                signal.signal(number, handler)
        os.close(self.wake_fd)
        os.close(self._write_fd)

    def check(self) -> None:
        """Raises Interrupted if a signal has come."""
        if self.received is not None:
            raise Interrupted

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            if self.embedded:
                return
            try:
                self.second()
            finally:
                with suppress(OSError):  # nobody may be there to read it
                    os.write(2, f"stopped at once; {RESUME}\n".encode())
                os._exit(128 + number)
        self.received = number
        os.write(self._write_fd, b"x")
