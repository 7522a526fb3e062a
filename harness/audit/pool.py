"""Children that compile at once, each in the care of a thread; one that dies or hangs costs the
kernel that it was compiling.
"""

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
from types import TracebackType
from typing import Any, Self

from ..errors import BadInput
from ..process.worker_process import Fault, Interrupted, Worker
from .architecture import Capability, written

PROGRAM = "attnbench.harness.audit.child"
COMPILE_S = 600.0  # the slowest of ours take 10 s on an idle core
PLAN_S = 120.0
POLL_S = 0.2
MOST_CHILDREN = 16  # each holds a torch and a compiler, 0.5 to 1 GB


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which kernels are wanted."""

    capabilities: tuple[Capability, ...]
    dtypes: tuple[str, ...]
    kernels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Began:
    """A child has taken up this kernel."""

    case: str


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a kernel, in the fields of its row."""

    case: str
    answer: Mapping[str, Any]
    started_utc: str
    spent_s: float


class Pool:
    """`kernels` is the plan, `environment` what the first child says of the machine and its
    software.
    """

    def __init__(self, selection: Selection) -> None:
        """Raises BadInput where ptxas cannot make code for a GPU that is wanted; Fault where no
        child can be started.
        """
        self._selection = selection
        self._stop_read, self._stop_write = os.pipe()
        self._stopped = False
        self._threads: list[threading.Thread] = []
        self._left: SimpleQueue[str] = SimpleQueue()
        self._said: SimpleQueue[Began | Done | BaseException] = SimpleQueue()
        self._numbers = count(1)
        self.logs: Path | None = None
        self._first: Worker | None = None
        self._first, self.kernels = self._child()
        self.environment: Mapping[str, Any] = self._first.ready["environment"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends all children, whatever they are doing."""
        self._stopped = True
        os.write(self._stop_write, b"x")
        for thread in self._threads:
            thread.join()
        if self._first is not None:
            self._first.kill()
        os.close(self._stop_read)
        os.close(self._stop_write)

    def results(self, cases: Sequence[str], check: Callable[[], None]) -> Iterator[Began | Done]:
        """As they come. `check` is called now and then, and may raise."""
        for case in cases:
            self._left.put(case)
        if self._first is not None:
            self._keep_log(self._first)
        cores = min(
            self.environment["cores"], ceil(self.environment["quota_cores"] or MOST_CHILDREN)
        )
        for _ in range(max(1, min(cores, MOST_CHILDREN, len(cases)))):
            adopted, self._first = self._first, None
            thread = threading.Thread(target=self._compile, args=(adopted,))
            self._threads.append(thread)
            thread.start()
        done = 0
        while done < len(cases):
            check()
            try:
                said = self._said.get(timeout=POLL_S)
            except Empty:
                continue
            if isinstance(said, BaseException):
                raise said
            done += isinstance(said, Done)
            yield said

    def _compile(self, child: Worker | None) -> None:
        """What each thread does, with a child of its own."""
        try:
            while not self._stopped:
                case = self._left.get_nowait()
                self._said.put(Began(case))
                started_utc, started = (
                    datetime.now(UTC).isoformat(timespec="milliseconds"),
                    time.monotonic(),
                )
                try:
                    child = child or self._child()[0]
                    child.send({"op": "compile", "case": case})
                    answer = child.receive(COMPILE_S)
                    del answer["event"]
                except Fault as fault:
                    log_tail = fault.log_tail
                    if child is not None:
                        child.kill()
                        log_tail = child.log_tail()
                        child = None
                    answer = {"status": fault.status, "reason": fault.reason, "log_tail": log_tail}
                self._said.put(Done(case, answer, started_utc, time.monotonic() - started))
        except (Empty, Interrupted):
            pass
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits for results
            self._said.put(error)
        finally:
            if child is not None:
                child.kill()

    def _child(self) -> tuple[Worker, list[dict[str, Any]]]:
        """A fresh one that has the plan, and the plan. Raises BadInput, Fault and Interrupted."""
        child = Worker("cpu", self._stop_read, program=PROGRAM)
        try:
            self._keep_log(child)
            selection = self._selection
            names = {"dtypes": selection.dtypes, "kernels": selection.kernels}
            child.send({"op": "plan", "capabilities": selection.capabilities, **names})
            answer = child.receive(PLAN_S)
        except BaseException as error:
            child.kill()
            if isinstance(error, Fault):
                error.log_tail = child.log_tail()
            raise
        if answer["event"] == "strange":
            child.kill()
            known = ", ".join(f"{major}{minor}" for major, minor in answer["known"] if major >= 8)
            raise BadInput(
                f"--arch: Triton's ptxas {answer['ptxas']} makes no code for"
                f" {written(answer['capability'])}; it does for {known}"
            )
        return child, answer["kernels"]

    def _keep_log(self, child: Worker) -> None:
        if self.logs is not None:
            child.write_log(self.logs / f"worker-{next(self._numbers)}.log")
