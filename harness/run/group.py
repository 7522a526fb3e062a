"""One group of cases while it is measured: asks the workers, takes in what they say, and turns
whatever happens into one record per case.

In which order groups and processes take their turns is lap.py's business.
"""

import random
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ..cases import Case, reported_pairs
from ..costs import known
from ..measure.utilization_tier import tier_of
from ..process.worker_process import Fault
from ..record import Record, Status
from ..telemetry.timeline import Timeline
from .sampling import Sampler
from .worker_pool import Crew, Terms

if TYPE_CHECKING:
    from ..measure.steady_loop import Way  # its module brings torch

REFERENCE_TIMES = 4  # our own work, the exact result, may take so many times a case's time limit
# and so many times compiling: the first kernel on a machine takes half a minute of two idle cores
COMPILE_TIMES = 5


@dataclass(slots=True, kw_only=True)
class State:
    """What is known of a case while its group is measured."""

    case: Case
    fields: dict[str, Any]
    started_utc: str | None = None
    spent_s: float = 0.0
    repeats: int = 0
    seen: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What every group of a run is measured with. `running` is told what the workers are doing;
    `timeline` samples the device during windows and never while latency is measured."""

    terms: Terms
    crew: Crew
    attempts: dict[str, int]
    running: Callable[[str, str], None]
    timeline: Timeline | None = None


class Guilty(Exception):
    """A worker was lost; `case_id` was running, None for our own work. `python`: the worker's
    environment.
    """

    def __init__(
        self,
        fault: Fault,
        case_id: str | None,
        phase: str,
        log_tail: str | None,
        python: str | None,
    ) -> None:
        self.fault = fault
        self.case_id = case_id
        self.phase = phase
        self.log_tail = log_tail
        self.python = python


class GroupRun:
    """The steps of one group: judge, turns, finish. A step gives the records of the cases that
    ended in it, and raises Guilty where it lost its worker; `convict` and `begin_again` are then
    the way on.

    `alone`: nothing else is measured beside it. `lonely` collects the cases that must be tried
    again that way.
    """

    def __init__(self, means: Means, cases: Sequence[Case], *, alone: bool = False) -> None:
        self.means = means
        self.terms = means.terms
        self.alone = alone
        self.lonely: list[Case] = []
        self.order = random.Random(f"{means.terms.seed} {cases[0].id if cases else ''}")
        self._begin(cases)

    def _begin(self, cases: Sequence[Case]) -> None:
        self.states = {case.id: State(case=case, fields=known(case.problem)) for case in cases}
        self.sampler = Sampler(
            self.terms.plan, ()
        )  # the samples of a session that broke are not those of this one
        self.session = secrets.token_hex(6)

    # ---- steps -----------------------------------------------------------------------------------

    def judge(self) -> Iterator[Record]:
        """Refuse, gate and memory of every case, in the first worker of its environment."""
        yield from self._ask_each(0, "judge", list(self.states))
        if "latency" in self.terms.measure:
            pairs = reported_pairs(
                [state.case for state in self.states.values()],
                self.terms.baseline,
                self.terms.contrast,
            )
            self.sampler = Sampler(self.terms.plan, self.states, pairs)

    def wants(self, number: int) -> bool:
        """Whether a turn of this process would bring anything."""
        return bool(self.sampler.wanting(number))

    def turn(self, number: int) -> Iterator[Record]:
        """The blocks that the round under way still wants of one process."""
        names = self.sampler.wanting(number)
        opened = [self._environment(name) for name in names]
        yield from self._ask_each(number, "open", names)
        while wanting := self.sampler.wanting(number):
            self.order.shuffle(
                wanting
            )  # one order over all environments: the block goes from worker to worker as it says
            for python, some in [
                (python, list(some)) for python, some in groupby(wanting, key=self._environment)
            ]:
                yield from self._ask(number, python, "block", some)
        yield from self._close(number, opened)

    def watch(self) -> Iterator[Record]:
        """Windows under the device's counters, for the cases that want them, one repeat after the
        other over the processes.

        A step that broke can be taken again: what has been seen is kept.
        """
        watched = [
            name for name, state in self.states.items() if self.terms.watches(state.case.problem)
        ]
        windows = (
            self.terms.plan.windows if {"utilization", "energy"} & set(self.terms.measure) else 0
        )
        for repeat in range(max(1, windows)):
            names = [
                name
                for name in watched
                if name in self.states and self.states[name].repeats == repeat
            ]
            if not names:
                continue
            number = repeat % self.terms.plan.processes
            opened = [self._environment(name) for name in names]
            yield from self._ask_each(number, "open", names)
            if repeat == 0 and "kernels" in self.terms.measure:
                yield from self._ask_each(number, "dissect", names)
            self.order.shuffle(names)
            for name in names:
                for way in self._ways() if windows else ():
                    if name in self.states:
                        yield from self._window(number, name, way)
                if name in self.states:
                    self.states[name].repeats += 1
            yield from self._close(number, opened)

    def _window(self, number: int, name: str, way: "Way") -> Iterator[Record]:
        timeline = self.means.timeline
        if timeline:
            timeline.go(name, self.means.crew.pids())
        try:
            more = {"measure": self.terms.measure, "window_s": self.terms.plan.window_s, "way": way}
            yield from self._ask(number, self._environment(name), "watch", [name], more)
        finally:
            if timeline:
                timeline.quiet()

    def _ways(self) -> "tuple[Way, ...]":
        return (
            ("eager", "graph")
            if "graphs" in self.terms.measure and self.terms.device == "cuda"
            else ("eager",)
        )

    def finish(self) -> Iterator[Record]:
        """The records of all cases that came through."""
        self.sampler.settle()
        for name in list(self.states):
            state = self.states.pop(name)
            yield self._record(state, Status.OK, "", phase="", log_tail=None)

    def convict(self, guilty: Guilty) -> Iterator[Record]:
        """The record of the case that broke the worker; of all of its environment where it was none
        of theirs.
        """
        all_of_it = [name for name in self.states if self._environment(name) == guilty.python]
        for name in [guilty.case_id] if guilty.case_id is not None else all_of_it:
            state = self.states.pop(name, None)
            if state is not None:
                self.sampler.drop(name)
                yield self._record(
                    state, guilty.fault.status, guilty.fault.reason, guilty.phase, guilty.log_tail
                )

    def begin_again(self) -> None:
        """Those that are left start from nothing: what they had was measured beside the
        guilty one.
        """
        self._begin([state.case for state in self.states.values()])

    def unfinished(self, status: Status, reason: str) -> Iterator[Record]:
        """Records for the cases that were under way when the run was stopped."""
        for state in self.states.values():
            yield self._record(state, status, reason, phase="", log_tail=None)
        for case in self.lonely:
            yield self._record(
                State(case=case, fields=known(case.problem)),
                status,
                reason,
                phase="",
                log_tail=None,
            )
        self.states = {}
        self.lonely = []

    # ---- talking to a worker ---------------------------------------------------------------------

    def _environment(self, name: str) -> str | None:
        return self.states[name].case.python

    def _ask_each(self, number: int, op: str, names: list[str]) -> Iterator[Record]:
        """One environment's worker after the other, each for its own cases."""
        own: dict[str | None, list[str]] = {}
        for name in filter(self.states.__contains__, names):
            own.setdefault(self._environment(name), []).append(name)
        for python, some in own.items():
            yield from self._ask(number, python, op, some)

    def _close(self, number: int, opened: Iterable[str | None]) -> Iterator[Record]:
        for python in dict.fromkeys(opened):
            yield from self._ask(number, python, "close", [])

    def _ask(
        self,
        number: int,
        python: str | None,
        op: str,
        names: list[str],
        more: Mapping[str, Any] = {},
    ) -> Iterator[Record]:
        """Send one request and take in its events; a case that ends is recorded at once. Raises
        Guilty when the worker is lost.
        """
        current: str | None = None
        phase = ""
        since = time.monotonic()
        try:
            worker = self.means.crew.worker(number, python)
            worker.send(
                {"op": op, "cases": [self.states[name].case.fields() for name in names], **more}
            )
            while True:
                event = worker.receive(self._limit_s(current, phase) + more.get("window_s", 0.0))
                now = time.monotonic()
                self._charge(current, now - since)
                since = now
                match event["event"]:
                    case "done":
                        return
                    case "running":
                        current, phase = event["case"], event["phase"]
                        self._started(current, phase)
                    case "facts":
                        self.states[event["case"]].fields.update(event["fields"])
                    case "warm":
                        self.states[event["case"]].fields["graph_reason"] = event["graph_reason"]
                        if (
                            event["case"] in self.sampler.samplings
                        ):  # it is not where no latency was asked for
                            self.sampler.samplings[event["case"]].steady.append(event["stationary"])
                    case "samples":
                        self.sampler.samplings[event["case"]].add(
                            number, event["quantities"], event["spent_s"]
                        )
                    case "seen":
                        self._seen(self.states[event["case"]], event)
                    case "ended":
                        yield from self._ended(event)
                        if event["poisoned"]:
                            self.means.crew.dismiss(number)
                            raise Guilty(
                                Fault(Status.ERROR, event["reason"]),
                                event["case"],
                                phase,
                                None,
                                python,
                            )
        except Fault as fault:
            self._charge(current, time.monotonic() - since)
            if fault.status is Status.TIMEOUT and phase:
                limit = f"{self._limit_s(current, phase):g} s in one step"
                hint = "raise it with --timeout, or make the case smaller"
                fault.reason = (
                    f"more than {limit}; {hint}"
                    if current
                    else f"the exact result took more than {limit}; {hint}"
                )
            raise Guilty(
                fault,
                current,
                phase,
                self.means.crew.dismiss(number, python) or fault.log_tail,
                python,
            ) from None

    def _ended(self, event: dict[str, Any]) -> Iterator[Record]:
        state = self.states.pop(event["case"])
        self.sampler.drop(event["case"])
        if event["status"] == Status.OOM and not self.alone and not self._too_large(state):
            self.lonely.append(state.case)  # it may be the others' memory that was missing
            return
        yield self._record(
            state, Status(event["status"]), event["reason"], event["phase"], event["log_tail"]
        )

    def _seen(self, state: State, event: dict[str, Any]) -> None:
        if event["window"] is not None:
            process = state.repeats % self.terms.plan.processes
            state.seen.setdefault("windows", []).append({"process": process, **event["window"]})
        if event["tables"]:
            state.seen["tables"] = {**state.seen.get("tables", {}), **event["tables"]}
        state.seen["missing"] = {**state.seen.get("missing", {}), **event["missing"]}

    def _too_large(self, state: State) -> bool:
        """Whether the case is known not to fit even alone."""
        peak = state.fields.get("predicted_peak_bytes")
        return peak is not None and peak + state.fields["input_bytes"] > self.terms.budget_bytes

    def _started(self, name: str | None, phase: str) -> None:
        if name is not None:
            state = self.states.get(name)
            if state is not None and state.started_utc is None:
                state.started_utc = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.means.running(name or "exact result", phase)

    def _limit_s(self, name: str | None, phase: str) -> float:
        """How long one step may take: preparing, one judged or weighed call, a warm-up, a block."""
        return self.terms.timeout_s * (
            REFERENCE_TIMES if name is None else COMPILE_TIMES if phase == "compile" else 1
        )

    def _charge(self, name: str | None, seconds: float) -> None:
        if name is not None and name in self.states:
            self.states[name].spent_s += seconds

    # ---- records ---------------------------------------------------------------------------------

    def _record(
        self, state: State, status: Status, reason: str, phase: str, log_tail: str | None
    ) -> Record:
        sampling = self.sampler.samplings.get(state.case.id)
        samples = (
            sampling.fields()
            if status is Status.OK and sampling is not None and sampling.block_ms
            else {}
        )
        seen = state.seen if status is Status.OK else {}
        if "utilization" in self.terms.measure and seen.get("windows"):
            seen = {
                **seen,
                "utilization_tier": tier_of(seen["windows"], self.terms.device, self.terms.peaks),
            }
        return Record(
            case=state.case,
            device=self.terms.device,
            attempt=self.means.attempts.get(state.case.id, 0) + 1,
            status=status,
            reason=reason,
            phase=phase,
            log_tail=log_tail,
            session=self.session if samples else None,
            started_utc=state.started_utc,
            spent_s=state.spent_s if state.started_utc else None,
            **{**state.fields, **samples, **seen},
        )
