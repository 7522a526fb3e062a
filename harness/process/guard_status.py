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


class GuardStatus:
    """As subprocess.Popen has it. `started`: the guard's process, if this process has started it.

    The fork server reaps its guards only when the run asks for the next one, so that until then no
    other process has their numbers.
    """

    def __init__(self, fd: int, started: "subprocess.Popen[bytes] | None") -> None:
        self.fd = fd
        self._started = started
        self._told = b""

    @property
    def pid(self) -> int | None:
        """The worker's; its guard's, or None, before it has begun."""
        self.poll()
        numbers = self._told.split()
        if len(numbers) > 1:
            return int(numbers[1])
        return self._started.pid if self._started else None

    def poll(self) -> int | None:
        """The worker's exit code, -N if signal N ended it; None while its guard lives."""
        while self.fd >= 0 and select.select([self.fd], [], [], 0)[0]:
            told = os.read(self.fd, 100)
            self._told += told
            if not told:
                self.close()
        if self._started:
            return self._started.poll()
        if self._told.endswith(b"\n"):
            return int(self._told.split()[-1])
        return -signal.SIGKILL if self.fd < 0 else None

    def wait(self, timeout_s: float) -> int:
        """Raises subprocess.TimeoutExpired."""
        if self._started:
            return self._started.wait(timeout_s)
        deadline_s = time.monotonic() + timeout_s
        while (code := self.poll()) is None:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                raise subprocess.TimeoutExpired("a worker", timeout_s)
            select.select([self.fd], [], [], left_s)
        return code

    def send_signal(self, number: int) -> None:
        """Nothing if the guard has ended or has not begun."""
        if self._started:
            self._started.send_signal(number)
        elif self.poll() is None and self._told:
            with suppress(ProcessLookupError):
                os.kill(int(self._told.split()[0]), number)

    def signal_all(self, number: int) -> None:
        """To the worker and all that it has started, also what has left it."""
        if self.poll() is None and self._told:
            for pid in descendants(int(self._told.split()[0])):
                with suppress(OSError):
                    os.kill(pid, number)

    def close(self) -> None:
        """Safe to call twice."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1
