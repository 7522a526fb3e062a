"""The child's end of worker_process.py: requests in, one reply each, and an end with the parent."""

import faulthandler
import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ..rows.status import Status
from .guard import guarded

ALLOW_IMPORT = "allow-import"
"""A worker's argument: it also imports from the current folder, after everything else, and then
from the folders that follow.
"""
AllowImport = bool | tuple[str, ...]
"""Whether workers may import user modules; with folders from these too."""


PHASES = {
    "draw": "prepare",
    "check": "gate",
    "window": "utilization",
    "profile": "kernels",
    **dict.fromkeys(("warm_up", "renew", "sample", "output"), "latency"),
}
"""Of the row of a case that ends in a step, or loses its worker there."""


class CaseEnded(Exception):
    """A case goes no further, while its child lives: raised by a step in the child, and by whoever
    asked for it. `fields`: of its row, that are known.
    """

    def __init__(
        self,
        status: Status,
        reason: str,
        phase: str,
        log_tail: str | None = None,
        fields: Mapping[str, Any] = {},
    ) -> None:
        super().__init__(reason)
        self.status, self.reason, self.phase = status, reason, phase
        self.log_tail, self.fields = log_tail, fields


class Parent:
    """Who started this one: `python -P -m PROGRAM LINE_FD STATUS_FD PID ARGUMENTS...`.

    LINE_FD is a socket for requests and replies, STATUS_FD for the guard, PID the number of the
    process that starts this one: asked for here, the answer would be another one if it has died.
    Make this before anything slow is imported: from here on this process and all that it starts die
    with the parent.
    """

    def __init__(self) -> None:
        self.line_fd, status_fd, parent = map(int, sys.argv[1:4])
        self.arguments = sys.argv[4:]
        guarded(parent, [self.line_fd], status_fd)
        faulthandler.enable()
        os.set_inheritable(self.line_fd, False)

    def reply(self, op: str, **fields: Any) -> None:
        """Answer the request of this name; a child's first reply is "ready", unasked."""
        data = (json.dumps({"op": op, **fields}, allow_nan=False) + "\n").encode()
        while data:
            data = data[os.write(self.line_fd, data) :]

    def requests(self) -> Iterator[dict[str, Any]]:
        """Requests as they come, until the parent closes its end."""
        with open(self.line_fd, "rb", closefd=False) as lines:
            yield from map(json.loads, lines)
