"""The child's end of worker_process.py: requests in, events out, and an end with the parent."""

import ctypes
import faulthandler
import json
import os
import select
import signal
import sys
from collections.abc import Iterator, Mapping
from typing import Any

PR_SET_PDEATHSIG = 1  # prctl(2)
ALLOW_IMPORT = "allow-import"
"""A worker's argument: it also imports from the current folder, after everything else."""


class Parent:
    """The process that started this one as `python -P -m PROGRAM REQUEST_FD EVENT_FD ARGUMENTS...`.

    Make it before anything slow is imported: from here on this process dies with its parent.
    """

    def __init__(self) -> None:
        die_with(os.getppid())
        faulthandler.enable()
        self._request_fd, self._event_fd = int(sys.argv[1]), int(sys.argv[2])
        self.arguments = sys.argv[3:]
        for fd in (self._request_fd, self._event_fd):
            os.set_inheritable(fd, False)
        self._pending = b""

    def say(self, event: Mapping[str, Any]) -> None:
        """Send one event; it carries the key "event"."""
        data = (json.dumps(event, allow_nan=False) + "\n").encode()
        while data:
            data = data[os.write(self._event_fd, data) :]

    def requests(self) -> Iterator[dict[str, Any]]:
        """Requests as they come, until the parent closes its end."""
        while (found := self.poll(None)) is not None:
            yield from found

    def poll(self, timeout_s: float | None) -> list[dict[str, Any]] | None:
        """The requests that came within the timeout (None: wait); None once the parent is done."""
        if not select.select([self._request_fd], [], [], timeout_s)[0]:
            return []
        chunk = os.read(self._request_fd, 1 << 16)
        if not chunk:
            return None
        *lines, self._pending = (self._pending + chunk).split(b"\n")
        return [json.loads(line) for line in lines]


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent dies.

    "Parent" is the thread that started this process, so that thread must live as long.
    """
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the line above
        os._exit(1)
