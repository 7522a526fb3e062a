"""The parent's end of a child process: start it, ask it with a deadline, learn how it died.

The child's end is child.py. Requests and events are JSON objects, one per line, on two pipes of
their own: stdout and stderr stay free for whatever the child prints.
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
from .interpreter import SAFE_PATH

LOG_CAP_BYTES = 1 << 20
TAIL_BYTES = 4096
LINE_CAP_BYTES = 16 << 20
TOKEN_VARIABLE = "ATTNBENCH_WORKER"  # noqa: S105 - it marks our processes, it opens nothing
READY_S = 180.0  # importing torch from a cold network disk can take minutes
ANSWER_S = 60.0  # for a request that needs no measuring
TERM_S = 2.0
POLL_S = 0.5
PACKAGE_PARENT = Path(__file__).parents[3]


class WorkerFailure(Exception):
    """The process died, hangs or cannot be trusted; `status` and `reason` are those of a row."""

    def __init__(self, status: Status, reason: str, log_tail: str | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.log_tail = log_tail


class Interrupted(Exception):
    """A signal asked the run to end."""


class WorkerProcess:
    """A child that runs `python -P -m PROGRAM REQUEST_FD EVENT_FD ARGUMENTS...`.

    `python`: another interpreter than ours, which finds its own packages. `wake_fd`: `receive`
    raises Interrupted when it becomes readable. `name`: what messages call the child. The child
    dies with the thread that starts it.
    """

    def __init__(
        self,
        program: str,
        *arguments: str,
        python: Path | None = None,
        wake_fd: int | None = None,
        name: str = "worker",
    ) -> None:
        request_read, self._request_fd = os.pipe()
        self._event_fd, event_write = os.pipe()
        interpreter = str(python or sys.executable)
        self._name = name
        self._token = secrets.token_hex(16)
        self._oom_kills = host_oom_kills()
        self._process = subprocess.Popen(
            [
                *(interpreter, *SAFE_PATH, "-m", program),
                *(str(request_read), str(event_write), *arguments),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(request_read, event_write),
            start_new_session=True,  # Ctrl-C is for the run, which then ends its workers
            env=child_environment(ours=python is None) | {TOKEN_VARIABLE: self._token},
        )
        os.close(request_read)
        os.close(event_write)
        os.set_blocking(self._request_fd, False)  # a child that has stopped must not stop us
        self._pid_fd = pid_fd(self._process.pid)
        self._wake_fd = wake_fd
        self._buffer = b""
        self._killed = False
        self._printed = bytearray()
        self._tail = b""
        self._log: Path | None = None
        self.ready: dict[str, Any] = {}
        assert self._process.stdout is not None
        self._drain = threading.Thread(
            target=self._copy_output, args=(self._process.stdout,), daemon=True
        )
        self._drain.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; -N if signal N ended it."""
        return self._process.poll()

    def wait_ready(self, timeout_s: float = READY_S) -> None:
        """Wait for the first event and keep it as `ready`.

        Raises WorkerFailure, with what the child printed, and Interrupted; it is killed then.
        """
        try:
            self.ready = self.receive(timeout_s)
        except BaseException as error:
            self.kill()
            if isinstance(error, WorkerFailure):
                error.log_tail = self.log_tail()
            raise

    def send(self, request: Mapping[str, Any], timeout_s: float = ANSWER_S) -> None:
        """Raises WorkerFailure if the child has died or reads no requests."""
        data = (json.dumps(request) + "\n").encode()
        while data:
            try:
                data = data[os.write(self._request_fd, data) :]
            except BlockingIOError:
                if not select.select([], [self._request_fd], [], timeout_s)[1]:
                    raise WorkerFailure(
                        Status.TIMEOUT, f"the {self._name} reads no requests"
                    ) from None
            except BrokenPipeError:
                raise self._death() from None

    def receive(self, timeout_s: float) -> dict[str, Any]:
        """The next event. Raises WorkerFailure (timeout, death, not an event) and Interrupted."""
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            left = max(0.0, deadline - time.monotonic())
            watched = [fd for fd in (self._event_fd, self._pid_fd, self._wake_fd) if fd is not None]
            wait_s = left if self._pid_fd >= 0 else min(left, POLL_S)
            readable = select.select([fd for fd in watched if fd >= 0], [], [], wait_s)[0]
            if self._wake_fd in readable:
                raise Interrupted
            if self._event_fd in readable:
                chunk = os.read(self._event_fd, 1 << 16)
                if not chunk:
                    raise self._death()
                self._buffer += chunk
                if len(self._buffer) > LINE_CAP_BYTES:
                    reason = f"bad reply: an event of more than {LINE_CAP_BYTES} bytes"
                    raise WorkerFailure(Status.ERROR, reason)
            elif self._pid_fd in readable or (self._pid_fd < 0 and self.exit_code is not None):
                raise self._death()
            elif not left:
                raise WorkerFailure(Status.TIMEOUT, f"still running after its {timeout_s:.3g} s")
        line, self._buffer = self._buffer.split(b"\n", 1)
        try:
            event = json.loads(line)
            event["event"]
        except (ValueError, KeyError, TypeError):
            raise WorkerFailure(Status.ERROR, f"bad reply: {line[:80]!r} is not an event") from None
        return dict(event)

    def ask(self, request: Mapping[str, Any], wanted: str, timeout_s: float) -> dict[str, Any]:
        """Send a request that has one answer, the event `wanted` before `done`, and return it.

        Raises as `send` and `receive`.
        """
        self.send(request)
        answer: dict[str, Any] = {}
        while (event := self.receive(timeout_s))["event"] != "done":
            answer = event
        if answer.pop("event", None) != wanted:
            reason = f"bad reply: {str(answer)[:80]} does not answer {request['op']}"
            raise WorkerFailure(Status.ERROR, reason)
        return answer

    def end_requests(self) -> None:
        """Tell the child that no request follows, so that it ends; safe to call twice."""
        if self._request_fd >= 0:
            os.close(self._request_fd)
        self._request_fd = -1

    def close(self) -> None:
        """Let the child end by itself, then make sure."""
        self.end_requests()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(TERM_S)
        self.kill()

    def kill(self, term_s: float = TERM_S) -> None:
        """End the child and every process that it started, also those that left its group.

        SIGTERM, then after at most `term_s` SIGKILL. Safe to call twice.
        """
        if self._killed:
            return
        self._killed = True
        for number, wait_s in ((signal.SIGTERM, term_s), (signal.SIGKILL, TERM_S)):
            if wait_s:
                with suppress(ProcessLookupError):
                    os.killpg(self.pid, number)
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(wait_s)
        for process in self._descendants():
            with suppress(psutil.Error):
                process.kill()
        self.end_requests()
        for fd in (self._event_fd, self._pid_fd):
            if fd >= 0:
                os.close(fd)
        self._event_fd = self._pid_fd = -1
        self._drain.join(TERM_S)

    def log_tail(self) -> str | None:
        """The end of what the child printed."""
        self._drain.join(0.5)
        return self._tail.decode(errors="replace") or None

    def write_log(self, path: Path | None = None) -> None:
        """Write what the child has printed to its log; `path` is needed once."""
        self._log = path or self._log
        if self._log is not None and self._printed:
            with suppress(OSError):
                self._log.write_bytes(self._printed)

    def _copy_output(self, stream: IO[bytes]) -> None:
        """Read what the child prints, so that it never blocks: 1 MiB for the log, and the end."""
        with suppress(OSError, ValueError), stream:
            while chunk := os.read(stream.fileno(), 1 << 16):
                self._tail = (self._tail + chunk)[-TAIL_BYTES:]
                self._printed += chunk[: LOG_CAP_BYTES - len(self._printed)]
                self.write_log()

    def _descendants(self) -> Iterator[psutil.Process]:
        """Processes that inherited our token, even if their parent is gone."""
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get(TOKEN_VARIABLE) == self._token:
                    yield process

    def _death(self) -> WorkerFailure:
        """How the process ended, as a failure to raise."""
        try:
            code = self._process.wait(TERM_S)
        except subprocess.TimeoutExpired:
            return WorkerFailure(Status.ERROR, f"the {self._name} closed its reply pipe")
        if code >= 0:
            reason = f"the {self._name} ended with exit code {code}"
            return WorkerFailure(Status.CRASHED, reason)
        name = signal.Signals(-code).name
        if name == "SIGKILL":
            kills = host_oom_kills()
            if kills is not None and self._oom_kills is not None and kills > self._oom_kills:
                name += " by the host's out-of-memory killer; lower limits.memory_gib"
            else:
                name += ", maybe by the host's out-of-memory killer"
        return WorkerFailure(Status.CRASHED, name)


def pid_fd(pid: int) -> int:
    """A descriptor that becomes readable when the process ends.

    -1 if the kernel or a sandbox has none: then the process must be polled.
    """
    try:
        return os.pidfd_open(pid)
    except OSError:
        return -1


def child_environment(*, ours: bool = True) -> dict[str, str]:
    """The user's environment with a quiet profiler; for our own interpreter our package first.

    Another interpreter must not get that path: if we are installed it is our site-packages, with
    our torch in it. An empty entry of PYTHONPATH would mean the current folder; it is left out.
    """
    users = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [*([str(PACKAGE_PARENT)] if ours else []), *filter(None, users)]
    path = os.pathsep.join(paths)
    return {**os.environ, "PYTHONPATH": path, "KINETO_LOG_LEVEL": "5", "PYTHONUNBUFFERED": "1"}


def host_oom_kills() -> int | None:
    """How many processes of this control group the kernel killed for lack of memory.

    From memory.events of cgroup v2; None if unknown.
    """
    with suppress(OSError, ValueError):
        for line in Path("/sys/fs/cgroup/memory.events").read_text().splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    return None
