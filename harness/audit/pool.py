"""A pool of children that compile kernels; a child that dies or hangs costs one kernel."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from math import ceil
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Self

from ..files.errors import BadInput
from ..process import events
from ..process.worker_process import Interrupted, WorkerFailure, WorkerProcess
from ..rows.record import Status
from .architecture import Capability, dotted

PROGRAM = "attnbench.harness.audit.child"
COMPILE_S = 600.0  # our slowest kernel takes 10 s on an idle core
PLAN_S = 120.0
POLL_S = 0.2
# Kernels whose machine code a child reads at once: nvdisasm takes 0.35 s to start, 0.04 s for each.
TOGETHER = 16
MAX_CHILDREN = 16  # each holds a torch and a compiler, 0.5 to 1 GB


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSelection:
    """Which kernels to audit."""

    capabilities: tuple[Capability, ...]
    dtypes: tuple[str, ...]
    kernels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Started:
    """A child has started to compile this kernel."""

    case: str


@dataclass(frozen=True, slots=True)
class Compiled:
    """A kernel has been compiled, or not; `fields` of its row."""

    case: str
    fields: Mapping[str, Any]
    started_utc: str
    spent_s: float


@dataclass(slots=True)
class _Work:
    """A kernel to compile. `alone`: its machine code is read without that of others."""

    case: str
    alone: bool = False
    started_utc: str = ""
    spent_s: float = 0.0


def _compile_time(plan: Mapping[str, Any]) -> tuple[bool, int]:
    """Orders kernels by how long they take, so that no long one is left for the end.

    fp32 takes twice as long as half precision: its products are unrolled into single FFMA. Then
    wide heads do.
    """
    return plan["dtype"] == "fp32", plan["d_k"] + plan["d_v"]


class CompilerPool:
    """`kernels`: the plan. `environment`: the machine and its software, from the first child."""

    def __init__(self, selection: KernelSelection) -> None:
        """Raises BadInput if ptxas makes no code for a GPU, WorkerFailure if no child starts."""
        self._selection = selection
        self._stop_read, self._stop_write = os.pipe()
        self._stopped = False
        self._threads: list[threading.Thread] = []
        self._queue: SimpleQueue[_Work] = SimpleQueue()
        self._events: SimpleQueue[Started | Compiled | BaseException] = SimpleQueue()
        self._numbers = count(1)
        self.logs: Path | None = None
        self._first: WorkerProcess | None = None
        self._first, self.kernels = self._child()
        self.environment: Mapping[str, Any] = self._first.ready["environment"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End all children at once."""
        self._stopped = True
        os.write(self._stop_write, b"x")
        for thread in self._threads:
            thread.join()
        if self._first is not None:
            self._first.kill()
        os.close(self._stop_read)
        os.close(self._stop_write)

    def results(
        self, cases: Sequence[str], check: Callable[[], None]
    ) -> Iterator[Started | Compiled]:
        """Results as they come, those that take longest first.

        `check` is called while waiting, and may raise.
        """
        wanted = set(cases)
        for plan in sorted(self.kernels, key=_compile_time, reverse=True):
            if plan["case"] in wanted:
                self._queue.put(_Work(plan["case"]))
        if self._first is not None:
            self._write_log(self._first)
        cores = min(
            self.environment["cores"], ceil(self.environment["quota_cores"] or MAX_CHILDREN)
        )
        for _ in range(max(1, min(cores, MAX_CHILDREN, len(cases)))):
            adopted, self._first = self._first, None
            thread = threading.Thread(target=self._compile, args=(adopted,))
            self._threads.append(thread)
            thread.start()
        done = 0
        while done < len(cases):
            check()
            try:
                event = self._events.get(timeout=POLL_S)
            except Empty:
                continue
            if isinstance(event, BaseException):
                raise event
            done += isinstance(event, Compiled)
            yield event

    def _compile(self, child: WorkerProcess | None) -> None:
        """The body of each thread, with a child of its own."""
        built: list[_Work] = []  # whose machine code the child has still to read
        try:
            while not self._stopped:
                work = self._next()
                if work is None and not built:
                    break
                asked = built if work is None else [work]
                try:
                    child = child or self._child()[0]
                    if work is not None:
                        self._build(child, work, built)
                    if built and (work is None or work.alone or len(built) >= TOGETHER):
                        asked = built
                        self._read(child, built)
                except WorkerFailure as failure:
                    log_tail = failure.log_tail
                    if child is not None:
                        child.kill()
                        log_tail = child.log_tail()
                        child = None
                    answer = {"status": failure.status, "reason": failure.reason}
                    self._fail(asked, built, {**answer, "log_tail": log_tail})
        except Interrupted:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again by `results`
            self._events.put(error)
        finally:
            if child is not None:
                child.kill()

    def _next(self) -> _Work | None:
        """None if there is none left."""
        try:
            work = self._queue.get_nowait()
        except Empty:
            return None
        work.started_utc = work.started_utc or datetime.now(UTC).isoformat(timespec="milliseconds")
        return work

    def _build(self, child: WorkerProcess, work: _Work, built: list[_Work]) -> None:
        """It is done, or still to be read and then in `built`. Raises WorkerFailure."""
        self._events.put(Started(work.case))
        started = time.monotonic()
        try:
            child.send({"op": "compile", "case": work.case})
            answer = child.receive(COMPILE_S)
        finally:
            work.spent_s += time.monotonic() - started
        if answer["event"] == "built":
            built.append(work)
        else:
            self._finish(work, answer)

    def _read(self, child: WorkerProcess, built: list[_Work]) -> None:
        """Machine code of all that is built, which leaves the list. Raises WorkerFailure."""
        started = time.monotonic()
        child.send({"op": "read"})
        together = len(built)
        while built:
            answer = child.receive(COMPILE_S)
            ended = time.monotonic()
            if together:  # the first answer comes after what is done for all
                for work in built:
                    work.spent_s += (ended - started) / together
                together = 0
            else:
                built[0].spent_s += ended - started
            started = ended
            self._finish(built[0], answer)
            built.pop(0)

    def _finish(self, work: _Work, answer: dict[str, Any]) -> None:
        if answer.pop("event") != "compiled":
            raise WorkerFailure(Status.ERROR, "bad reply: not the result of a kernel")
        self._events.put(Compiled(work.case, answer, work.started_utc, work.spent_s))

    def _fail(self, asked: list[_Work], built: list[_Work], answer: dict[str, Any]) -> None:
        """A child has died: of several that it was asked for, each is tried again by itself."""
        if len(asked) == 1:
            (bad,) = asked
            self._events.put(Compiled(bad.case, answer, bad.started_utc, bad.spent_s))
            again = [work for work in built if work is not bad]
        else:
            again = list(built)
            for work in again:
                work.alone = True
        built.clear()
        for work in again:
            self._queue.put(work)

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
