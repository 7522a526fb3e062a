"""The parent's end of a worker process: start it, talk to it with a deadline, learn how it died,
leave nothing behind.
"""

import json
import os
import secrets
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import psutil

from ..record import Status

LOG_CAP_BYTES = 1 << 20
TAIL_BYTES = 4096
LINE_CAP_BYTES = 16 << 20
TOKEN_VARIABLE = "ATTNBENCH_WORKER"  # noqa: S105 - it tells our processes apart, it opens nothing
READY_S = 180.0  # importing torch from a cold network disk can take minutes
SET_S = 60.0
TERM_S = 2.0
POLL_S = 0.5
PACKAGE_PARENT = Path(__file__).parents[3]


class Fault(Exception):
    """The worker is gone or cannot be trusted any more. `status` and `reason` are what the row of
    the guilty case says.
    """

    def __init__(self, status: Status, reason: str, log_tail: str | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.log_tail = log_tail


class Interrupted(Exception):
    """A signal asked the run to end."""


class Worker:
    """One worker process. `ready` is its first event: device, environment and available memory, or
    what another `program` says.

    `python`: an interpreter other than ours, which finds its own packages.
    """

    def __init__(
        self,
        device: str,
        wake_fd: int | None = None,
        python: Path | None = None,
        program: str = "attnbench.harness.worker.serve",
    ) -> None:
        request_read, self._request_fd = os.pipe()
        self._event_fd, event_write = os.pipe()
        command = [
            str(python or sys.executable),
            "-m",
            program,
            str(request_read),
            str(event_write),
            device,
        ]
        self._token = secrets.token_hex(16)
        self._oom_kills = host_oom_kills()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(request_read, event_write),
            start_new_session=True,
            env=worker_environment(ours=python is None) | {TOKEN_VARIABLE: self._token},
        )
        os.close(request_read)
        os.close(event_write)
        self._pid_fd = pid_fd(self._process.pid)
        self._wake_fd = wake_fd
        self._buffer = b""
        self._ended = False
        self._printed = bytearray()
        self._tail = b""
        self._log: Path | None = None
        assert self._process.stdout is not None
        self._drain = threading.Thread(
            target=self._copy_output, args=(self._process.stdout,), daemon=True
        )
        self._drain.start()
        try:
            self.ready = self.receive(READY_S)
        except BaseException as error:
            self.kill()
            if isinstance(error, Fault):
                error.log_tail = self.log_tail()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, request: Mapping[str, Any]) -> None:
        """Raises Fault where the worker has died."""
        data = (json.dumps(request) + "\n").encode()
        try:
            while data:
                data = data[os.write(self._request_fd, data) :]
        except BrokenPipeError:
            raise self._death() from None

    def receive(self, timeout_s: float) -> dict[str, Any]:
        """The next event. Raises Fault (timeout, death, something that is no event) and
        Interrupted.
        """
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0:
                raise Fault(Status.TIMEOUT, f"still running after its {timeout_s:.3g} s")
            watched = [
                fd
                for fd in (self._event_fd, self._pid_fd, self._wake_fd)
                if fd is not None and fd >= 0
            ]
            readable = select.select(
                watched, [], [], left if self._pid_fd >= 0 else min(left, POLL_S)
            )[0]
            if self._wake_fd in readable:
                raise Interrupted
            if self._event_fd in readable:
                chunk = os.read(self._event_fd, 1 << 16)
                if not chunk:
                    raise self._death()
                self._buffer += chunk
                if len(self._buffer) > LINE_CAP_BYTES:
                    raise Fault(
                        Status.ERROR, f"bad reply: an event of more than {LINE_CAP_BYTES} bytes"
                    )
            elif self._pid_fd in readable or (
                self._pid_fd < 0 and self._process.poll() is not None
            ):
                raise self._death()
        line, self._buffer = self._buffer.split(b"\n", 1)
        try:
            event = json.loads(line)
            event["event"]
        except (ValueError, KeyError, TypeError):
            raise Fault(Status.ERROR, f"bad reply: {line[:80]!r} is no event") from None
        return dict(event)

    def free_bytes(self) -> int:
        """Memory that it could take now."""
        self.send({"op": "free"})
        answer = self.receive(SET_S)
        self.receive(SET_S)  # done
        return int(answer["available_bytes"])

    def close(self) -> None:
        """Let the worker end by itself, then make sure."""
        with suppress(OSError):
            os.close(self._request_fd)
        self._request_fd = -1
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(TERM_S)
        self.kill()

    def kill(self) -> None:
        """End the worker and every process that it started, also those that left its group; safe to
        call twice.
        """
        if self._ended:
            return
        self._ended = True
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(TERM_S)
        for process in self._descendants():
            with suppress(psutil.Error):
                process.kill()
        for fd in (self._request_fd, self._event_fd, self._pid_fd):
            if fd >= 0:
                with suppress(OSError):
                    os.close(fd)
        self._request_fd = self._event_fd = self._pid_fd = -1
        self._drain.join(TERM_S)

    def log_tail(self) -> str | None:
        """The end of what the worker printed."""
        self._drain.join(0.5)
        return self._tail.decode(errors="replace") or None

    def _descendants(self) -> Iterator[psutil.Process]:
        """Whoever inherited our token, even if its parent is gone."""
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get(TOKEN_VARIABLE) == self._token:
                    yield process

    def _death(self) -> Fault:
        """What the end of the process says."""
        try:
            code = self._process.wait(TERM_S)
        except subprocess.TimeoutExpired:
            return Fault(Status.ERROR, "the worker closed its reply pipe")
        if code >= 0:
            return Fault(Status.CRASHED, f"the worker ended with exit code {code}")
        name = signal.Signals(-code).name
        if name == "SIGKILL":
            kills = host_oom_kills()
            if kills is not None and self._oom_kills is not None and kills > self._oom_kills:
                return Fault(
                    Status.CRASHED,
                    "SIGKILL by the host's out-of-memory killer; lower limits.memory_gib",
                )
            return Fault(Status.CRASHED, "SIGKILL, maybe by the host's out-of-memory killer")
        return Fault(Status.CRASHED, name)

    def _copy_output(self, stream: IO[bytes]) -> None:
        """Take in whatever the worker prints, so that it never blocks: the first MiB for the log,
        the end for the row.
        """
        with suppress(OSError, ValueError), stream:
            while chunk := os.read(stream.fileno(), 1 << 16):
                self._tail = (self._tail + chunk)[-TAIL_BYTES:]
                self._printed += chunk[: LOG_CAP_BYTES - len(self._printed)]
                self.write_log()

    def write_log(self, path: Path | None = None) -> None:
        """Bring the log up to date; from the first call with a path on, the worker has one."""
        self._log = path or self._log
        if self._log is not None and self._printed:
            with suppress(OSError):
                self._log.write_bytes(self._printed)


def pid_fd(pid: int) -> int:
    """A descriptor that tells when the process ends; -1 where the kernel or a sandbox has none, and
    it must be asked now and then.
    """
    try:
        return os.pidfd_open(pid)
    except OSError:
        return -1


def worker_environment(*, ours: bool = True) -> dict[str, str]:
    """The user's environment with torch's profiler quiet; for our own interpreter with our package
    first.

    Another interpreter must not get that path: where we are installed it is our site-packages, with
    our torch in it.
    """
    paths = [
        *([str(PACKAGE_PARENT)] if ours else []),
        *filter(None, [os.environ.get("PYTHONPATH")]),
    ]
    path = {"PYTHONPATH": os.pathsep.join(paths)} if paths else {}
    return {**os.environ, **path, "KINETO_LOG_LEVEL": "5", "PYTHONUNBUFFERED": "1"}


def host_oom_kills() -> int | None:
    """Processes of this control group that the kernel killed for want of memory (cgroup v2
    memory.events); None where unknown.
    """
    with suppress(OSError, ValueError):
        for line in Path("/sys/fs/cgroup/memory.events").read_text().splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    return None
