"""A process that reads the device a few times a second into telemetry.jsonl (docs/format.md).

Started by timeline.py with the arguments FILE [UUID]: it reads the GPU with that UUID, else the
host. Requests: {"op": "sample", "what": ..., "pids": [...]} and {"op": "pause"}. Events: ready;
paused, after which nothing is read before the next sample; failed with a reason, and the process
ends.
"""

import errno
import json
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..files.safe_files import open_plain
from ..process.child import Parent
from .sources import PERIOD_NS, GpuSource, HostSource, Source


def main() -> None:
    parent = Parent()
    path, *uuid = parent.arguments
    try:
        log = Log(Path(path))
        source = GpuSource(uuid[0]) if uuid else HostSource()
        parent.say({"event": "ready"})
        serve(source, log, parent)
    except CannotWrite as failure:
        parent.say({"event": "failed", "reason": f"{path}: {failure}"})


def serve(source: Source, log: "Log", parent: Parent) -> None:
    """Sample between `sample` and `pause`, until requests end.

    Requests go first, so that no sample follows a pause.
    """
    what = ""
    due_ns: int | None = None  # None: paused
    last_ns = time.monotonic_ns() - PERIOD_NS
    missing: dict[str, str] | None = None
    while True:
        wait_s = None if due_ns is None else max(0, due_ns - time.monotonic_ns()) / 1e9
        requests = parent.poll(wait_s)
        if requests is None:
            return
        for request in requests:
            if request["op"] == "sample":
                what = request["what"]
                source.begin(request["pids"])
                due_ns = max(time.monotonic_ns() + source.lead_ns, last_ns + PERIOD_NS)
            else:
                due_ns = None
                parent.say({"event": "paused"})
        if due_ns is not None and not requests and time.monotonic_ns() >= due_ns:
            last_ns = time.monotonic_ns()
            utc = datetime.now(UTC).isoformat(timespec="milliseconds")
            readings = source.read()
            reasons = {
                name: answer.reason for name, answer in readings.items() if answer.value is None
            }
            if reasons != missing:
                missing = reasons
                log.append({**source.header, "missing": missing})
            values = {name: answer.value for name, answer in readings.items()}
            log.append({"t_ns": last_ns, "utc": utc, "what": what, **values})
            due_ns = next_due_ns(due_ns, time.monotonic_ns())


def next_due_ns(due_ns: int, now_ns: int) -> int:
    """The deadline on a grid of periods nearest to one period from now.

    So samples do not drift, and a stall is not followed by a burst.
    """
    late_ns = max(0, now_ns - due_ns)
    return due_ns + PERIOD_NS * (1 + (late_ns + PERIOD_NS // 2) // PERIOD_NS)


class CannotWrite(Exception):
    """The file cannot be written; the message says why."""


class Log:
    """A file to which whole lines are appended.

    Lines are not forced to the disk: that would stall the run's own rows.
    """

    def __init__(self, path: Path) -> None:
        try:
            self.fd = open_plain(path, os.O_CREAT | os.O_RDWR | os.O_APPEND)
            size = os.fstat(self.fd).st_size
            # A sampler that was killed leaves a torn last line.
            if size and os.pread(self.fd, 1, size - 1) != b"\n":
                os.write(self.fd, b"\n")
        except OSError as error:
            raise CannotWrite(error.strerror) from None

    def append(self, line: Mapping[str, Any]) -> None:
        data = (json.dumps(line, allow_nan=False) + "\n").encode()
        try:
            written = os.write(self.fd, data)
        except OSError as error:
            raise CannotWrite(error.strerror) from None
        if written < len(data):
            raise CannotWrite(os.strerror(errno.ENOSPC))


if __name__ == "__main__":
    main()
