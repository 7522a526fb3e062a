"""The child's end of worker_process.py: requests in, events out, and an end with the parent."""

import faulthandler
import json
import os
import select
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from .guard import guarded

ALLOW_IMPORT = "allow-import"
"""A worker's argument: it also imports from the current folder, after everything else, and then
from the folders that follow.
"""
AllowImport = bool | tuple[str, ...]
"""Whether workers may import user modules; with folders from these too."""
JUDGE_LOST = 70  # a worker's exit code if the process that judges its results has ended


class Parent:
    """Who started this one: `python -P -m PROGRAM REQUEST_FD EVENT_FD VERDICT_FD PID ARGUMENTS...`.

    VERDICT_FD is for the process that judges a worker's results, -1 without one. PID is the
    parent's own: asked for here, the answer would be another one if it has died. Make this before
    anything slow is imported: from here on this process and all that it starts die with the parent.
    """

    def __init__(self) -> None:
        self._request_fd, self._event_fd, self.verdict_fd, parent = map(int, sys.argv[1:5])
        self.arguments = sys.argv[5:]
        ours = [fd for fd in (self._request_fd, self._event_fd, self.verdict_fd) if fd >= 0]
        guarded(parent, ours)
        faulthandler.enable()
        for fd in ours:
            os.set_inheritable(fd, False)
        self._pending = b""
        self.say({"event": "started", "pid": os.getpid()})

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

    def leave(self) -> None:
        """In a fork of this process: its requests and events are not ours."""
        os.close(self._request_fd)
        os.close(self._event_fd)
