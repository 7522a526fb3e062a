"""The sampler: a process that reads the device a few times a second while it is told to, into
telemetry.jsonl (docs/format.md).

Started as `python -m attnbench.harness.telemetry.sampler FILE [UUID]`: the GPU with that UUID is
read, without one the host. Requests come on stdin, one JSON object per line: {"op": "go", "what":
..., "pids": [...]} and {"op": "quiet"}; the end of stdin ends the process. Events go to stdout:
ready; quiet, after which nothing is read before the next go; failed with a reason, and then it
ends. The parent's end is timeline.py.
"""

import errno
import json
import os
import select
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..process.parent_death import die_with
from .sources import PERIOD_NS, GpuSource, HostSource, Source


def main() -> None:
    die_with(os.getppid())
    path, uuid = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None
    try:
        log = Log(path)
        source = GpuSource(uuid) if uuid else HostSource()
        say({"event": "ready"})
        serve(source, log)
    except Unwritable as failure:
        say({"event": "failed", "reason": f"{path}: {failure}"})


def serve(source: Source, log: "Log") -> None:
    """Sample between go and quiet, until stdin ends. Requests go first, so that no sample follows a
    quiet.
    """
    pending, what = b"", ""
    due_ns: int | None = None  # None: be quiet
    last_ns = time.monotonic_ns() - PERIOD_NS
    missing: dict[str, str] | None = None
    while True:
        wait_s = None if due_ns is None else max(0, due_ns - time.monotonic_ns()) / 1e9
        if select.select([sys.stdin.fileno()], [], [], wait_s)[0]:
            chunk = os.read(sys.stdin.fileno(), 1 << 16)
            if not chunk:
                return
            *lines, pending = (pending + chunk).split(b"\n")
            for request in map(json.loads, lines):
                if request["op"] == "go":
                    what = request["what"]
                    source.begin(request.get("pids", ()))
                    due_ns = max(time.monotonic_ns() + source.lead_ns, last_ns + PERIOD_NS)
                else:
                    due_ns = None
                    say({"event": "quiet"})
        elif due_ns is not None:
            last_ns, utc = time.monotonic_ns(), datetime.now(UTC).isoformat(timespec="milliseconds")
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
    """The deadline of a grid of periods that is nearest to one period from now: no drift, and no
    burst after a stall.
    """
    late_ns = max(0, now_ns - due_ns)
    return due_ns + PERIOD_NS * (1 + (late_ns + PERIOD_NS // 2) // PERIOD_NS)


class Unwritable(Exception):
    """The file cannot be written; the message says why."""


class Log:
    """A file to which whole lines are appended. None is forced to the disk: that would stall the
    run's own rows.
    """

    def __init__(self, path: Path) -> None:
        try:
            self.fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o644)
            size = os.fstat(self.fd).st_size
            if (
                size and os.pread(self.fd, 1, size - 1) != b"\n"
            ):  # the torn last line of a sampler that was killed
                os.write(self.fd, b"\n")
        except OSError as error:
            raise Unwritable(error.strerror) from None

    def append(self, line: Mapping[str, Any]) -> None:
        data = (json.dumps(line, allow_nan=False) + "\n").encode()
        try:
            written = os.write(self.fd, data)
        except OSError as error:
            raise Unwritable(error.strerror) from None
        if written < len(data):
            raise Unwritable(os.strerror(errno.ENOSPC))


def say(event: Mapping[str, Any]) -> None:
    os.write(sys.stdout.fileno(), (json.dumps(event) + "\n").encode())


if __name__ == "__main__":
    main()
