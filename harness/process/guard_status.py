"""What a run knows of a guard (guard.py) that it, or the fork server, has started.

On a pipe the worker tells the guard's number and its own as it begins, and the guard how the worker
ended, once all below it have ended. The pipe ends with the guard, whatever ended that.
"""

import os
import select
import signal
import subprocess
import time
from contextlib import suppress

from ..devices.host import descendants

REAPED_S = 1.0  # a guard has told how its worker ended just before its own end


class GuardStatus:
    """With the methods of subprocess.Popen. `started`: the guard, if this process has started it.

    A guard that has ended keeps its number until `close`, or until the run asks the fork server for
    another: no other process has it.
    """

    def __init__(self, fd: int, started: "subprocess.Popen[bytes] | None") -> None:
        self.fd = fd
        self._started = started
        self._told = b""

    @property
    def _numbers(self) -> list[int]:
        """The guard's and the worker's; before that has begun, the guard's or none."""
        self.poll()
        return [*map(int, self._told.split()[:2])] or [one.pid for one in [self._started] if one]

    @property
    def pid(self) -> int | None:
        """The worker's; its guard's, or None, before it has begun."""
        return next(reversed(self._numbers), None)

    def poll(self) -> int | None:
        """The worker's exit code, -N if signal N ended it; None while its guard lives."""
        while self.fd >= 0 and select.select([self.fd], [], [], 0)[0]:
            told = os.read(self.fd, 100)
            self._told += told
            if not told:
                os.close(self.fd)
                self.fd = -1
        if self._told.endswith(b"\n"):
            return int(self._told.split()[-1])
        if self.fd >= 0:
            return None
        return self._started.wait() if self._started else -signal.SIGKILL

    def wait(self, timeout_s: float) -> int:
        """Raises subprocess.TimeoutExpired."""
        deadline_s = time.monotonic() + timeout_s
        while (code := self.poll()) is None:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                raise subprocess.TimeoutExpired("a worker", timeout_s)
            select.select([self.fd], [], [], left_s)
        return code

    def send_signal(self, number: int) -> None:
        """Nothing if the guard has ended or has not begun."""
        self._send(self._numbers[:1], number)

    def signal_all(self, number: int) -> None:
        """To the worker and all that it has started, also what has left it."""
        self._send([pid for guard in self._numbers[:1] for pid in descendants(guard)], number)

    def _send(self, pids: list[int], number: int) -> None:
        for pid in pids if self.poll() is None else ():
            with suppress(OSError):
                os.kill(pid, number)

    def close(self) -> None:
        """Safe to call twice."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1
        if self._started:
            with suppress(subprocess.TimeoutExpired):
                self._started.wait(REAPED_S)
