"""The judge's process, and the worker's end of the line to it.

The judge is a fork of the worker from before anything of a backend was imported, and before torch
has started a thread pool or a device: a process with the same torch, which dies with the worker. It
tells its verdicts to the run over a socket that it alone can write to, and no process without the
right to trace any other can read or change its memory (PR_SET_DUMPABLE, prctl(2)).
"""

import gc
import json
import os
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import torch

from ...impls.problem import Problem
from ..cases.case import fields_of, problem_of
from ..machine.environment import fix_threads, pick_device
from ..process.child import JUDGE_LOST, Parent
from ..process.guard import prctl, signal_at_end_of
from ..process.idle import wait_until_idle
from .judge import Judge

LENGTHS = struct.Struct("<QQ")  # of the JSON and of the bytes that follow
MOST_JSON_BYTES = 1 << 20


class Ended(Exception):
    """The other side is gone."""


def send(
    to: socket.socket, message: Mapping[str, Any], data: Iterable[memoryview] = (), size: int = 0
) -> None:
    """`data`: pieces of `size` bytes in all. Raises Ended, ValueError."""
    text = json.dumps(message, allow_nan=False).encode()
    try:
        to.sendall(LENGTHS.pack(len(text), size) + text)
        for piece in data:
            to.sendall(piece)
            size -= piece.nbytes
    except OSError as error:
        raise Ended(str(error)) from None
    if size:
        raise ValueError(f"{size} bytes fewer than announced")


def receive(of: socket.socket) -> tuple[dict[str, Any], bytearray]:
    """The next message and its bytes. Raises Ended, ValueError for what is no message."""
    length, size = LENGTHS.unpack(_exactly(of, LENGTHS.size))
    if length > MOST_JSON_BYTES:
        raise ValueError(f"a message of {length} bytes")
    message = json.loads(_exactly(of, length))
    if not isinstance(message, dict):
        raise ValueError("a message that is no object")
    return message, _exactly(of, size)


def _exactly(of: socket.socket, size: int) -> bytearray:
    found = bytearray(size)
    view = memoryview(found)
    while view:
        try:
            count = of.recv_into(view)
        except OSError as error:
            raise Ended(str(error)) from None
        if not count:
            raise Ended("no more messages")
        view = view[count:]
    return found


PR_SET_DUMPABLE = 4
MANY_SCORES = 1 << 28  # of 8 heads and 6 000 tokens: some tenths of a second of one thread
TINY = Problem(batch=1, seq_len=16, d_model=32, heads=2, passes="forward+backward")


class JudgeProcess:
    """Asks it. The worker ends at once if it is gone: nothing can be right or wrong any more."""

    def __init__(self, line: socket.socket, pid: int) -> None:
        self._line, self._pid = line, pid

    def ask(
        self, request: Mapping[str, Any], data: Iterable[memoryview] = (), size: int = 0
    ) -> tuple[dict[str, Any], bytes | bytearray]:
        """The answer and its bytes. `data`: pieces of `size` bytes in all."""
        try:
            send(self._line, request, data, size)
            answer = receive(self._line)
        except Ended:
            sys.stdout.flush()
            os._exit(JUDGE_LOST)
        if _is_large(request):
            wait_until_idle(self._pid)  # its threads spin for a while
        return answer

    def wait_ready(self) -> str:
        """Until it has started its device and its libraries; what failed then, "" if nothing."""
        return str(self.ask({"op": "ready"})[0]["failed"])


def start_judge(parent: Parent, device: str) -> JudgeProcess:
    """`device`: as requested of the worker."""
    ours, its = socket.socketpair()
    gc.freeze()  # the collector would write to memory that both share
    worker, pid = os.getpid(), os.fork()
    if pid == 0:
        ours.close()
        parent.leave()
        try:
            _serve(its, parent.verdict_fd, worker, device)
        finally:  # it is the worker's code that follows: never run it here
            failed = sys.exc_info()[0] is not None
            if failed:
                traceback.print_exc()
            os._exit(failed)
    its.close()
    os.close(parent.verdict_fd)
    return JudgeProcess(ours, pid)


def _serve(line: socket.socket, verdict_fd: int, worker: int, device: str) -> None:
    """The judge's program, until the worker has ended."""
    signal_at_end_of(worker, signal.SIGKILL)
    prctl(PR_SET_DUMPABLE, 0)

    def say(verdict: Mapping[str, Any]) -> None:
        data = (json.dumps(verdict, allow_nan=False) + "\n").encode()
        while data:
            data = data[os.write(verdict_fd, data) :]

    fix_threads()
    threads, judge = torch.get_num_threads(), Judge(say)
    failed = warm_up(pick_device(device)[0])
    with suppress(Ended):
        while True:
            request, data = receive(line)
            if request["op"] == "ready":
                send(line, {"failed": failed})
                continue
            torch.set_num_threads(threads if _is_large(request) else 1)
            answer, found = judge.answer(request, data)
            del data
            send(line, answer, (memoryview(found),), len(found))


def _is_large(request: Mapping[str, Any]) -> bool:
    """Whether several threads are worth it. Beside other work on the same cores they wait for one
    another after each of many small steps: two took ten times the processor time of one.
    """
    if request["op"] != "exact":
        return False
    p = problem_of(request["problem"])
    return p.batch * p.heads * p.seq_len * p.kv_seq_len >= MANY_SCORES


def warm_up(device: torch.device) -> str:
    """Load what a check needs, so that the first one takes as long as the others; what failed."""
    request = {"problem": fields_of(TINY), "order": "heads", "device": str(device), "seed": 0}
    asked = {"op": "exact", "check": "first", **request}
    return str(Judge(lambda verdict: None).answer(asked, bytearray())[0].get("failed", ""))
