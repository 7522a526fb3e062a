"""The terms of a run, and the workers that keep to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ...impls.problem import Problem
from ..cases import in_environment
from ..process.idle import wait_for_rest
from ..process.worker_process import SET_S, Fault, Worker
from ..record import Status
from ..scenario import Plan

WATCHING = frozenset({"utilization", "energy", "kernels"})
"""Names of `measure` that want the device watched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The terms of a run that every group is measured on.

    `watch`: the values of the axes whose problems are watched; `gpu_uuid`: the GPU whose counters
    are read, where it is not the one that torch uses; `peaks`: what this machine's calibration
    measured; `pythons`: the interpreter of each environment, none in a run of one.
    """

    device: str
    plan: Plan
    measure: tuple[str, ...]
    timeout_s: float
    budget_bytes: int
    seed: int
    baseline: str | None
    contrast: tuple[str, ...]
    watch: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    gpu_uuid: str | None = None
    peaks: Mapping[str, float] | None = None
    pythons: Mapping[str, Path] = field(default_factory=dict)

    def watches(self, problem: Problem) -> bool:
        """Whether the device's counters are wanted on this problem."""
        return bool(WATCHING & set(self.measure)) and all(
            getattr(problem, axis) in values for axis, values in self.watch.items()
        )


class Seat(NamedTuple):
    """The place of a worker: the number of the process, and its environment where there are
    several.
    """

    number: int
    python: str | None


class Crew:
    """The run's workers: started when first needed, kept, replaced after a fault."""

    def __init__(self, terms: Terms, logs: Path, wake_fd: int | None) -> None:
        self.terms = terms
        self.logs = logs
        self.wake_fd = wake_fd
        # A resumed run has logs already, and they are kept.
        self.started = max(
            (int(log.stem.rpartition("-")[2]) for log in logs.glob("worker-*.log")), default=0
        )
        self._workers: dict[Seat, Worker] = {}
        self._last: Seat | None = None

    def adopt(self, worker: Worker, python: str | None = None) -> None:
        """Take over a worker that was started before the terms were known."""
        self._workers[Seat(0, python)] = self._set(worker, python)

    def worker(self, number: int, python: str | None = None) -> Worker:
        """To be asked something now, when the one that was asked before has come to rest. Raises
        Fault.
        """
        seat = Seat(number, python)
        if seat not in self._workers:
            worker = Worker(
                self.terms.device,
                self.wake_fd,
                self.terms.pythons[python] if python is not None else None,
            )
            if worker.ready["why"]:
                worker.kill()
                raise Fault(
                    Status.UNAVAILABLE,
                    f"the {self.terms.device} device is gone: {worker.ready['why']}",
                )
            self._workers[seat] = self._set(worker, python)
        if self._last != seat and self._last in self._workers:
            wait_for_rest(self._workers[self._last].pid)
        self._last = seat
        return self._workers[seat]

    def ask(
        self, request: Mapping[str, Any], wanted: str, python: str | None = None
    ) -> dict[str, Any]:
        """Send the first worker a request that has one answer; it, without the key "event". Raises
        Fault where the worker is lost.
        """
        worker = self.worker(0, python)
        worker.send(request)
        answer: dict[str, Any] = {}
        while (event := worker.receive(self.terms.timeout_s))["event"] != "done":
            answer = event
        if answer.pop("event", None) != wanted:
            raise Fault(
                Status.ERROR, f"bad reply: {str(answer)[:80]} is no answer to {request['op']}"
            )
        return answer

    def pids(self) -> list[int]:
        return [worker.pid for worker in self._workers.values()]

    def dismiss(self, number: int, python: str | None = None) -> str | None:
        """Kill a worker; the next use of its number starts a fresh one. Returns the end of what it
        printed.

        The workers of this number in other environments go with it: they hold the members of the
        turn that has ended, and both sides of a ratio shall come from processes of one age.
        """
        seats = [seat for seat in self._workers if seat.number == number]
        dismissed = {seat: self._workers.pop(seat) for seat in seats}
        for worker in dismissed.values():
            worker.kill()
        guilty = dismissed.get(Seat(number, python))
        return guilty.log_tail() if guilty else None

    def close(self, *, at_once: bool = False) -> None:
        for worker in self._workers.values():
            worker.kill() if at_once else worker.close()
        self._workers.clear()

    def _set(self, worker: Worker, python: str | None) -> Worker:
        terms = self.terms
        self.started += 1
        worker.write_log(self.logs / f"{in_environment('worker', python)}-{self.started}.log")
        request = {
            "op": "set",
            "seed": terms.seed,
            "budget_bytes": terms.budget_bytes,
            "measure": terms.measure,
            "warm_heap": terms.plan.allocator == "warm_heap",
            "most_warm_up_s": terms.plan.budget_s,
            "gpu_uuid": terms.gpu_uuid,
        }
        try:
            worker.send(request)
            while worker.receive(SET_S)["event"] != "done":
                pass
        except BaseException:
            worker.kill()
            raise
        return worker
