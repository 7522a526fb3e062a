"""SIGINT, SIGTERM and SIGHUP as an orderly end."""

import os
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

from .spawn import Interrupted


class Signals:
    """The first signal is noticed while waiting for a worker, never in the middle of a write; a second one ends everything at once.

    `rest` and `watch` serve a program that does other things between the steps of a run: there signals are its own affair.
    """

    NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self, advice: str = "attnbench run --resume finds what was saved") -> None:
        self.advice = advice
        self.received: int | None = None
        self.second: Callable[[], None] = lambda: None
        self.wake_fd, self._write_fd = os.pipe()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self.watch()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.rest()
        os.close(self.wake_fd)
        os.close(self._write_fd)

    def watch(self) -> None:
        """Safe to call twice, as `rest` is."""
        for number in self.NUMBERS if not self._before else ():
            self._before[number] = signal.signal(number, self._note)

    def rest(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def check(self) -> None:
        """Raises Interrupted where a signal has come."""
        if self.received is not None:
            raise Interrupted

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            try:
                self.second()
            finally:
                os.write(2, f"stopped at once; {self.advice}\n".encode())
                os._exit(128 + number)
        self.received = number
        os.write(self._write_fd, b"x")
