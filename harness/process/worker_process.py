"""The parent's end of a child process: start it, ask it with a deadline, learn how it died.

The child's end is child.py. Requests and replies are JSON objects, one per line, on a socket of
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
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

import psutil

from ..devices.host import RUN, host_oom_kills
from ..rows.record import Status
from .child import CaseEnded
from .command import PACKAGE_PARENT, SAFE_PATH, TERM_S, GuardStatus, end_guarded
from .replies import SHOWN_BYTES, WORKER, BadReply, CaseEnd, Replies, parse
from .worker_log import WorkerLog

LINE_CAP_BYTES = 16 << 20
MARK = "ATTNBENCH_WORKER"
"""In the environment of what a child has started, unless that drops it."""
REFUSED = "the system refused a process"
READY_S = 180.0  # importing torch from a cold network disk can take minutes
ANSWER_S = 60.0  # for a request that needs no measuring
SERVER_S = 1.0  # until all below a fork server that was killed has ended


class WorkerFailure(Exception):
    """The process died, hangs or cannot be trusted; `status` and `reason` are those of a row."""

    def __init__(self, status: Status, reason: str, log_tail: str | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.log_tail = log_tail


class Interrupted(Exception):
    """A signal asked the run to end."""


class Forks(Protocol):
    """What has children forked: fork_server.py."""

    def fork(self, fds: Sequence[int], start: bytes) -> "WorkerProcess":
        """Have descriptors and what to start given to a new fork; who forks it."""


class WorkerProcess:
    """A child that runs `python -P -m PROGRAM LINE_FD STATUS_FD OUR_PID ARGUMENTS...`, or the same
    as a fork of `server`.

    `wake_fd`: a wait for the child raises Interrupted when it becomes readable. `name`: what
    messages call the child. `replies`: what it may say. The child dies with this process, and so
    does everything that it has started (guard.py). Raises WorkerFailure if there can be none.
    """

    def __init__(
        self,
        program: str,
        *arguments: str,
        server: "Forks | None" = None,
        wake_fd: int | None = None,
        name: str = "worker",
        replies: Replies = WORKER,
    ) -> None:
        self._name, self._replies, self._wake_fd = name, replies, wake_fd
        self._oom_kills = host_oom_kills()
        self._mark = secrets.token_hex(16)
        environment = child_environment() | {RUN: str(os.getpid()), MARK: self._mark}
        start = json.dumps([program, arguments, environment]).encode()
        started: subprocess.Popen[bytes] | None = None
        self._server: WorkerProcess | None = None
        fds: list[int] = []
        try:
            fds += (one.detach() for one in socket.socketpair())
            fds += os.pipe()
            fds += os.pipe()
            theirs = line_fd, status_fd, output_fd = fds[1::2]
            if server is not None:
                self._server = server.fork(theirs, start)
            else:
                numbers = map(str, (line_fd, status_fd, os.getpid()))
                started = subprocess.Popen(
                    [sys.executable, *SAFE_PATH, "-m", program, *numbers, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=output_fd,
                    stderr=subprocess.STDOUT,
                    pass_fds=(line_fd, status_fd),
                    start_new_session=True,  # Ctrl-C is for the run, which then ends its workers
                    env=environment,
                )
        except (OSError, WorkerFailure) as error:
            for fd in fds:
                os.close(fd)
            if isinstance(error, WorkerFailure):
                raise
            # no descriptor, no process, no memory is left
            raise WorkerFailure(Status.ERROR, f"{REFUSED}: {error.strerror}") from None
        for fd in theirs:
            os.close(fd)
        self._line = socket.socket(fileno=fds[0])
        self._line.setblocking(False)  # a child that has stopped must not stop us
        self._guard = GuardStatus(fds[2], started)
        self._buffer = bytearray()
        self._killed = self._paused = False
        self.log = WorkerLog(fds[4])
        self.ready: Any = None

    @property
    def pid(self) -> int:
        """The child's; before it has begun its guard's, or 0."""
        return self._guard.pid or 0

    @property
    def exit_code(self) -> int | None:
        """None while it runs; -N if signal N ended it."""
        return self._guard.poll()

    def wait_ready(self, timeout_s: float = READY_S) -> None:
        """Wait for the first reply and keep it as `ready`.

        Raises WorkerFailure, with what the child printed, and Interrupted; it is killed then.
        """
        try:
            self.ready = self.receive("ready", timeout_s)
        except BaseException as error:
            if self._server is not None and not self.pid:
                self._server.kill()  # it hangs, or nobody waits for it any more
            self.kill()
            if isinstance(error, WorkerFailure):
                error.log_tail = error.log_tail or self.log.tail()
            raise

    def ask(self, op: str, timeout_s: float, **fields: Any) -> Any:
        """Send a request and return its reply, a model of `replies`.

        Raises as `send` and `receive`.
        """
        self.send(op, **fields)
        return self.receive(op, timeout_s)

    def send(self, op: str, *, timeout_s: float = ANSWER_S, **fields: Any) -> None:
        """Raises WorkerFailure if the child has died, reads no requests, or spoke unasked."""
        self._read(0.0)
        if self._buffer:
            what = f"{bytes(self._buffer[:SHOWN_BYTES])!r} answers no request"
            raise WorkerFailure(Status.ERROR, f"bad reply: {what}")
        self._write((json.dumps({"op": op, **fields}) + "\n").encode(), timeout_s)

    def receive(self, op: str, timeout_s: float) -> Any:
        """The reply to a request of this name.

        Raises WorkerFailure (timeout, death, a bad reply), CaseEnded, and Interrupted.
        """
        deadline_s = time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            if not self._read(max(0.0, deadline_s - time.monotonic())):
                raise WorkerFailure(Status.TIMEOUT, f"still running after its {timeout_s:.3g} s")
            if len(self._buffer) > LINE_CAP_BYTES:
                reason = f"bad reply: more than {LINE_CAP_BYTES} bytes"
                raise WorkerFailure(Status.ERROR, reason)
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            reply = parse(bytes(line), self._replies)
        except BadReply as bad:
            raise WorkerFailure(Status.ERROR, f"bad reply: {bad}") from None
        if isinstance(reply, CaseEnd) and op != "ready":
            status = Status(reply.status)
            raise CaseEnded(status, reply.reason, reply.phase, reply.log_tail, reply.fields)
        if reply.op != op:
            raise WorkerFailure(Status.ERROR, f"bad reply: {reply.op} does not answer {op}")
        return reply

    def hand_over(self, fds: Sequence[int]) -> None:
        """Give the child descriptors. Raises WorkerFailure if it has died."""
        try:
            socket.send_fds(self._line, [b"x"], fds)
        except (BrokenPipeError, ConnectionResetError):
            raise self._death() from None

    def _write(self, data: bytes, timeout_s: float) -> None:
        while data:
            try:
                data = data[self._line.send(data) :]
            except BlockingIOError:
                if not select.select([], [self._line], [], timeout_s)[1]:
                    reason = f"the {self._name} reads no requests"
                    raise WorkerFailure(Status.TIMEOUT, reason) from None
            except (BrokenPipeError, ConnectionResetError):
                raise self._death() from None

    def _read(self, timeout_s: float) -> bool:
        """Whether the child or its guard said anything. Raises WorkerFailure and Interrupted."""
        ended = self.exit_code is not None or self._guard.fd < 0  # before looking for a last reply
        watched = [self._line.fileno(), *([] if ended else [self._guard.fd])]
        watched += [] if self._wake_fd is None else [self._wake_fd]
        readable = select.select(watched, [], [], 0.0 if ended else timeout_s)[0]
        if self._wake_fd in readable:
            raise Interrupted
        if self._line.fileno() in readable:
            with suppress(ConnectionResetError):  # it ended with a request unread
                if chunk := self._line.recv(1 << 16):
                    self._buffer += chunk
                    return True
            raise self._death()
        if ended:
            raise self._death()
        return bool(readable)

    def pause(self) -> None:
        """Stop the child and all that it has started, until `resume`, `close` or `kill`."""
        self._guard.signal_all(signal.SIGSTOP)
        self._paused = True

    def resume(self) -> None:
        if self._paused:
            self._guard.signal_all(signal.SIGCONT)
        self._paused = False

    def end_requests(self) -> None:
        """Tell the child that no request follows, so that it ends; safe to call twice."""
        with suppress(OSError):
            self._line.shutdown(socket.SHUT_WR)

    def wait(self, timeout_s: float) -> int | None:
        """Its exit code; None if it still runs then."""
        with suppress(subprocess.TimeoutExpired):
            return self._guard.wait(timeout_s)
        return None

    def close(self) -> None:
        """Let the child end by itself, then make sure."""
        self.resume()
        self.end_requests()
        self.wait(TERM_S)
        self.kill()

    def kill(self, term_s: float = TERM_S) -> None:
        """End the child and every process that it started, also those that left its group.

        SIGTERM, then after at most `term_s` SIGKILL. Safe to call twice.
        """
        if self._killed:
            return
        self._killed = True
        self.resume()  # what is stopped does not hear SIGTERM
        if self.pid:
            end_guarded(self._guard, term_s)
        if self.exit_code == -signal.SIGKILL:
            self._end_unguarded()
        self._line.close()
        self._guard.close()  # a fork that has not begun yet ends when it does
        self.log.close()

    def _end_unguarded(self) -> None:
        """What the child had started, if somebody has killed its guard."""
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get(MARK) == self._mark:
                    process.kill()

    def _death(self) -> WorkerFailure:
        """How the process ended, as a failure to raise."""
        code = self.wait(TERM_S)
        if code is None:
            return WorkerFailure(Status.ERROR, f"the {self._name} closed its reply pipe")
        if code == -signal.SIGKILL and self._server:
            lost = self._server.wait(SERVER_S)
            if lost is not None:
                how = how_it_ended("fork server", lost, self._oom_kills)
                reason = f"the {self._name} lost its fork server: {how}"
                return WorkerFailure(Status.ERROR, reason, self._server.log.tail())
            if not self.pid:
                return WorkerFailure(Status.ERROR, REFUSED)
        return WorkerFailure(Status.CRASHED, how_it_ended(self._name, code, self._oom_kills))


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
