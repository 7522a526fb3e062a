"""A pool of children that compile kernels; a child that dies or hangs costs one kernel."""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple, Self

from ..files.errors import BadInput
from ..process import events
from ..process.worker_process import WorkerFailure, WorkerProcess
from ..rows.record import Status
from .occupancy import Capability, dotted

PROGRAM = "attnbench.harness.audit.child"
COMPILE_S = 600.0  # our slowest kernel takes 10 s on an idle core
PLAN_S = 120.0
POLL_S = 0.2
MAX_CHILDREN = 16  # each holds a torch and a compiler, 0.5 to 1 GB


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSelection:
    """Which kernels to audit."""

    capabilities: tuple[Capability, ...]
    dtypes: tuple[str, ...]
    kernels: tuple[str, ...]


class Started(NamedTuple):
    """A child has started to compile this kernel."""

    case: str


class Compiled(NamedTuple):
    """A kernel has been compiled, or not; `fields` of its row."""

    case: str
    fields: Mapping[str, Any]


def _compile_time(plan: Mapping[str, Any]) -> tuple[bool, int]:
    """Orders kernels by how long they take, so that no long one is left for the end.

    fp32 takes twice as long as half precision: its products are unrolled into single FFMA. Then
    wide heads do.
    """
    return plan["dtype"] == "fp32", plan["d_k"] + plan["d_v"]


class CompilerPool:
    """`kernels`: the plan. `environment`: the machine and its software, from the first child.
    `logs`: the folder for what children print, once there is one.
    """

    def __init__(self, selection: KernelSelection) -> None:
        """Raises BadInput if ptxas makes no code for a GPU, WorkerFailure if no child starts."""
        self._selection = selection
        self._stop_read, self._stop_write = os.pipe()
        self._started: deque[str] = deque()
        self._numbers = count(1)
        self.logs: Path | None = None
        first, self.kernels = self._child()
        self._idle = [first]
        self.environment: Mapping[str, Any] = first.ready["environment"]
        quota = ceil(self.environment["quota_cores"] or MAX_CHILDREN)
        most = min(self.environment["cores"], quota, MAX_CHILDREN, len(self.kernels))
        self._threads = ThreadPoolExecutor(max(1, most))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End all children at once."""
        os.write(self._stop_write, b"x")
        self._threads.shutdown(cancel_futures=True)
        for child in self._idle:
            child.kill()
        os.close(self._stop_read)
        os.close(self._stop_write)

    def results(self, check: Callable[[], None]) -> Iterator[Started | Compiled]:
        """Results as they come, those that take longest first.

        `check` is called while waiting, and may raise.
        """
        for child in self._idle:
            self._write_log(child)
        plans = sorted(self.kernels, key=_compile_time, reverse=True)
        left = {self._threads.submit(self._compiled, plan["case"]) for plan in plans}
        while left:
            check()
            done, left = wait(left, POLL_S, FIRST_COMPLETED)
            while self._started:
                yield Started(self._started.popleft())
            for one in done:
                yield one.result()

    def _compiled(self, case: str) -> Compiled:
        """In a child of its own meanwhile. Raises BadInput, Interrupted."""
        self._started.append(case)
        since, since_utc = time.monotonic(), datetime.now(UTC)
        child = None
        try:
            with suppress(IndexError):  # there are as many children as threads, at most
                child = self._idle.pop()
            child = child or self._child()[0]
            since = time.monotonic()
            child.send({"op": "compile", "case": case})
            answer = child.receive(COMPILE_S)
            if answer.pop("event") != "compiled":
                raise WorkerFailure(Status.ERROR, "bad reply: not the result of a kernel")
            self._idle.append(child)
        except BaseException as failure:
            if child is not None:
                child.kill()
            if not isinstance(failure, WorkerFailure):
                raise
            log_tail = child.log_tail() if child is not None else failure.log_tail
            answer = {"status": failure.status, "reason": failure.reason, "log_tail": log_tail}
        answer["status"] = Status(answer["status"])
        answer["started_utc"] = since_utc.isoformat(timespec="milliseconds")
        answer["spent_s"] = time.monotonic() - since
        return Compiled(case, answer)

    def _child(self) -> tuple[WorkerProcess, list[dict[str, Any]]]:
        """A new child that knows the plan, and the plan.

        Raises BadInput, WorkerFailure and Interrupted.
        """
        child = WorkerProcess(PROGRAM, wake_fd=self._stop_read, events=events.COMPILER)
        child.wait_ready()
        try:
            self._write_log(child)
            selection = self._selection
            names = {"dtypes": selection.dtypes, "kernels": selection.kernels}
            child.send({"op": "plan", "capabilities": selection.capabilities, **names})
            answer = child.receive(PLAN_S)
        except BaseException as error:
            child.kill()
            if isinstance(error, WorkerFailure):
                error.log_tail = child.log_tail()
            raise
        if answer["event"] == "unknown_capability":
            child.kill()
            known = ", ".join(f"{major}{minor}" for major, minor in answer["known"] if major >= 8)
            raise BadInput(
                f"--arch: Triton's ptxas {answer['ptxas']} makes no code for"
                f" {dotted(answer['capability'])}; it does for {known}"
            )
        return child, answer["kernels"]

    def _write_log(self, child: WorkerProcess) -> None:
        if self.logs is not None:
            child.write_log(self.logs / f"worker-{next(self._numbers)}.log")
