"""SIGINT, SIGTERM and SIGHUP as an orderly end."""

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

from .worker_process import Interrupted


class Signals:
    """The first signal is noticed while waiting for a worker, never in the middle of a write; a
    second one ends everything at once.

    `rest` and `watch` serve a program that does other things between the steps of a run: there
    signals are its own affair.

    As a guest in somebody else's process it leaves that alone: a second signal is ignored while the
    first one ends the run in order. Outside the main thread Python lets nobody listen to signals,
    and none is noticed.
    """

    NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(
        self, advice: str = "attnbench run --resume finds what was saved", *, is_guest: bool = False
    ) -> None:
        self.advice = advice
        self.is_guest = is_guest
        self.received: int | None = None
        self.second: Callable[[], None] = lambda: None
        self.wake_fd, self._write_fd = os.pipe()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self.watch()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.rest()
        os.close(self.wake_fd)
        os.close(self._write_fd)

    def watch(self) -> None:
        """Safe to call twice, as `rest` is."""
        listening = not self._before and threading.current_thread() is threading.main_thread()
        for number in self.NUMBERS if listening else ():
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
            if self.is_guest:
                return
            try:
                self.second()
            finally:
                os.write(2, f"stopped at once; {self.advice}\n".encode())
                os._exit(128 + number)
        self.received = number
        os.write(self._write_fd, b"x")
