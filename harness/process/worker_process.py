"""The parent's end of a child process: start it, ask it with a deadline, learn how it died.

The child's end is child.py. Requests and events are JSON objects, one per line, on two pipes of
their own: stdout and stderr stay free for whatever the child prints.
"""

import json
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import psutil

from ..machine.control_group import host_oom_kills
from ..rows.record import Status
from .child import JUDGE_LOST
from .command import PACKAGE_PARENT, SAFE_PATH, TERM_S, end_guarded
from .events import JUDGE, BadReply, Events, any_event, parse
from .worker_log import WorkerLog

LINE_CAP_BYTES = 16 << 20
TOKEN_VARIABLE = "ATTNBENCH_WORKER"  # noqa: S105 - it marks our processes, it opens nothing
READY_S = 180.0  # importing torch from a cold network disk can take minutes
ANSWER_S = 60.0  # for a request that needs no measuring
POLL_S = 0.5


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
    """A child that runs `python -P -m PROGRAM REQUEST_FD EVENT_FD VERDICT_FD OUR_PID ARGUMENTS...`.

    `wake_fd`: `receive` raises Interrupted when it becomes readable. `name`: what messages call the
    child. `events`: what it may say. `judged`: its results are judged by a process that it starts,
    whose verdicts come on a line of their own. The child dies with this process, and so does
    everything that it has started (guard.py). Raises WorkerFailure if the machine cannot start one.
    """

    def __init__(
        self,
        program: str,
        *arguments: str,
        wake_fd: int | None = None,
        name: str = "worker",
        events: Events = any_event,
        judged: bool = False,
    ) -> None:
        self._name, self._events = name, events
        self._token = secrets.token_hex(16)
        self._oom_kills = host_oom_kills()
        pipes: list[int] = []
        try:
            pipes += os.pipe()
            pipes += os.pipe()
            # a socket: the end of a pipe could be opened again through /proc
            pipes += (one.detach() for one in socket.socketpair()) if judged else (-1, -1)
            request_read, self._request_fd, self._event_fd, event_write = pipes[:4]
            self._verdict_fd, verdict_write = pipes[4:]
            theirs = [fd for fd in (request_read, event_write, verdict_write) if fd >= 0]
            numbers = (request_read, event_write, verdict_write, os.getpid())
            self._process = subprocess.Popen(
                [sys.executable, *SAFE_PATH, "-m", program, *map(str, numbers), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=theirs,
                start_new_session=True,  # Ctrl-C is for the run, which then ends its workers
                env=child_environment() | {TOKEN_VARIABLE: self._token},
            )
        except OSError as error:  # no descriptor, no process, no memory is left
            for descriptor in filter(lambda fd: fd >= 0, pipes):
                os.close(descriptor)
            reason = f"the system refused a process: {error.strerror}"
            raise WorkerFailure(Status.ERROR, reason) from None
        for descriptor in theirs:
            os.close(descriptor)
        os.set_blocking(self._request_fd, False)  # a child that has stopped must not stop us
        self._pid: int | None = None
        self._pid_fd = pid_fd(self._process.pid)
        self._wake_fd = wake_fd
        self._buffer = self._verdict_buffer = b""
        self._verdicts: list[dict[str, Any]] = []
        self._killed = False
        self._log = WorkerLog()
        self.ready: dict[str, Any] = {}
        assert self._process.stdout is not None
        self._drain = threading.Thread(
            target=self._copy_output, args=(self._process.stdout,), daemon=True
        )
        self._drain.start()

    @property
    def pid(self) -> int:
        """The child's; its guard's until the child has said that it has started."""
        if self._pid is None:
            with suppress(OSError, ValueError):  # no event yet; `receive` will complain
                if select.select([self._event_fd], [], [], 0)[0]:
                    self._buffer += os.read(self._event_fd, 1 << 16)
                first, _, rest = self._buffer.partition(b"\n")
                event = parse(first, any_event)
                if event["event"] == "started":
                    self._pid, self._buffer = event["pid"], rest
        return self._pid or self._process.pid

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
            ours = (self._event_fd, self._pid_fd, self._wake_fd, self._verdict_fd)
            watched = [fd for fd in ours if fd is not None]
            wait_s = left if self._pid_fd >= 0 else min(left, POLL_S)
            readable = select.select([fd for fd in watched if fd >= 0], [], [], wait_s)[0]
            if self._wake_fd in readable:
                raise Interrupted
            if self._verdict_fd >= 0 and self._verdict_fd in readable:
                self._read_verdicts()
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
            elif not left and self._verdict_fd not in readable:
                raise WorkerFailure(Status.TIMEOUT, f"still running after its {timeout_s:.3g} s")
        line, self._buffer = self._buffer.split(b"\n", 1)
        try:
            event = parse(line, self._events)
        except BadReply as bad:
            raise WorkerFailure(Status.ERROR, f"bad reply: {bad}") from None
        if self._pid is None and event["event"] == "started":
            self._pid = event["pid"]
            return self.receive(max(0.0, deadline - time.monotonic()))
        return event

    def verdicts(self) -> list[dict[str, Any]]:
        """Those that were told since the last call. Raises WorkerFailure for what is none."""
        while self._verdict_fd >= 0 and select.select([self._verdict_fd], [], [], 0)[0]:
            self._read_verdicts()
        found, self._verdicts = self._verdicts, []
        return found

    def _read_verdicts(self) -> None:
        chunk = os.read(self._verdict_fd, 1 << 16)
        if not chunk:  # its worker ends too, and says how it ended
            os.close(self._verdict_fd)
            self._verdict_fd = -1
        *lines, self._verdict_buffer = (self._verdict_buffer + chunk).split(b"\n")
        try:
            self._verdicts += (parse(line, JUDGE) for line in lines)
        except BadReply as bad:
            raise WorkerFailure(Status.ERROR, f"bad verdict: {bad}") from None

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
        end_guarded(self._process, term_s)
        for process in self._descendants():
            with suppress(psutil.Error):
                process.kill()
        self.end_requests()
        for fd in (self._event_fd, self._pid_fd, self._verdict_fd):
            if fd >= 0:
                os.close(fd)
        self._event_fd = self._pid_fd = self._verdict_fd = -1
        self._drain.join(TERM_S)
        self._log.close()

    def log_tail(self) -> str | None:
        """The end of what the child printed."""
        self._drain.join(0.5)
        return self._log.tail.decode(errors="replace") or None

    def write_log(self, path: Path) -> None:
        """Append what the child has printed, and what it will print, to its log."""
        self._log.open(path)

    @property
    def log_failure(self) -> str | None:
        """Why its log lacks some of what it printed."""
        return self._log.failure

    def _copy_output(self, stream: IO[bytes]) -> None:
        """Read what the child prints, so that it never blocks: 1 MiB for the log, and the end."""
        with suppress(OSError, ValueError), stream:
            while chunk := os.read(stream.fileno(), 1 << 16):
                self._log.add(chunk)

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
        if code == JUDGE_LOST:
            return WorkerFailure(Status.ERROR, "the process that judges its results has ended")
        return WorkerFailure(Status.CRASHED, how_it_ended(self._name, code, self._oom_kills))


def pid_fd(pid: int) -> int:
    """A descriptor that becomes readable when the process ends.

    -1 if the kernel or a sandbox has none: then the process must be polled.
    """
    try:
        return os.pidfd_open(pid)
    except OSError:
        return -1


def child_environment() -> dict[str, str]:
    """The user's environment with a quiet profiler; our package first.

    With one heap for all threads: after an allocation that failed, glibc gives a thread another one
    (arena_get_retry), where every block of more than 64 MiB is mapped anew, page by page.

    An empty entry of PYTHONPATH would mean the current folder; it is left out.
    """
    users = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = os.pathsep.join([str(PACKAGE_PARENT), *filter(None, users)])
    fixed = {"PYTHONPATH": path, "KINETO_LOG_LEVEL": "5", "PYTHONUNBUFFERED": "1"}
    return {"MALLOC_ARENA_MAX": "1", **os.environ, **fixed}


def signal_name(number: int) -> str:
    """`SIGSEGV`; `signal 35 (SIGRTMIN+1)` for one that has no name of its own."""
    with suppress(ValueError):
        return signal.Signals(number).name
    real_time = number - signal.SIGRTMIN
    more = f" (SIGRTMIN+{real_time})" if 0 < real_time < signal.SIGRTMAX - signal.SIGRTMIN else ""
    return f"signal {number}{more}"


def how_it_ended(name: str, exit_code: int, oom_kills_before: int | None) -> str:
    """Of the process called `name`; `exit_code` is -N if signal N ended it."""
    if exit_code >= 0:
        return f"the {name} ended with exit code {exit_code}"
    by = signal_name(-exit_code)
    if by != "SIGKILL":
        return by
    kills = host_oom_kills()
    if kills is not None and oom_kills_before is not None and kills > oom_kills_before:
        return f"{by} by the host's out-of-memory killer; lower limits.memory_gib"
    return f"{by}, maybe by the host's out-of-memory killer"
