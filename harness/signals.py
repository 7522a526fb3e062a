"""SIGINT, SIGTERM and SIGHUP as an orderly end."""

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

from .spawn import Interrupted


class Signals:
    """The first signal is noticed while waiting for a worker, never in the middle of a write; a second one ends everything at once.

    As a guest in somebody else's process it leaves that alone: a second signal is ignored while the first one ends the run in order.
    Outside the main thread Python lets nobody listen to signals, and none is noticed.
    """

    NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self, *, is_guest: bool = False) -> None:
        self.is_guest = is_guest
        self.received: int | None = None
        self.second: Callable[[], None] = lambda: None
        self.wake_fd, self._write_fd = os.pipe()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in self.NUMBERS if threading.current_thread() is threading.main_thread() else ():
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self.wake_fd)
        os.close(self._write_fd)

    def check(self) -> None:
        """Raises Interrupted where a signal has come."""
        if self.received is not None:
            raise Interrupted

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            if self.is_guest:
                return
            try:
                self.second()
            finally:
                os.write(2, b"stopped at once; attnbench run --resume finds what was saved\n")
                os._exit(128 + number)
        self.received = number
        os.write(self._write_fd, b"x")
