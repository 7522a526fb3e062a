"""Requests to workers about the cases of a group: what their events say, and a record of each case
that ends.
"""

import secrets
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..cases.case import Case
from ..cases.costs import known_costs
from ..machine.cpu import waited_s
from ..measure.launch_flags import add_floor, launch_flags
from ..measure.physical_floor import refutation
from ..process.worker_process import WorkerFailure
from ..rows.record import Record, Status
from ..rows.utilization import tier_of
from .case_state import CaseState
from .runtime import Runtime
from .sampling import Sampler
from .worker_pool import bad_reply, hanging_launch

PROC = Path("/proc")
REFERENCE_TIMES = 4  # how many of a case's time limits our own work, the exact result, may take
COMPILE_TIMES = 5  # and compiling: the first kernel on a machine takes half a minute of two cores


@dataclass(eq=False)
class WorkerLost(Exception):
    """A worker was lost while it ran `case_id`, or our own work (None)."""

    failure: WorkerFailure
    case_id: str | None
    phase: str
    log_tail: str | None
    again: bool  # another case may have broken the process: only alone a case shows what it does


class Requests:
    """About these cases, from their start on or after a restart. `retry_alone` collects the cases
    that must be tried again alone; None: nothing else is measured in the same process.

    A request yields the records of the cases that end in it, and raises WorkerLost.
    """

    def __init__(
        self, context: Runtime, cases: Sequence[Case], retry_alone: list[Case] | None
    ) -> None:
        self.context = context
        self.config = context.spec
        self.retry_alone = retry_alone
        self.states = {
            case.id: CaseState(case=case, fields=known_costs(case.problem)) for case in cases
        }
        self.known = frozenset(self.states)  # also those that end meanwhile
        self.sampler = Sampler(self.config.plan, ())  # samples of a broken session do not count
        self.session = secrets.token_hex(6)

    def ask_each(self, process: int, op: str, names: list[str]) -> Iterator[Record]:
        """Ask for those that have not ended."""
        if left := [name for name in names if name in self.states]:
            yield from self.ask(process, op, left)

    def ask(
        self, process: int, op: str, names: list[str], more: Mapping[str, Any] = {}
    ) -> Iterator[Record]:
        """Send one request and read its events; yield the records of the cases that end.

        worker/measure.py lists the events. Raises WorkerLost.
        """
        current: str | None = None
        silent = set(names) if op == "sample" else set()
        worker, phase = None, ""
        since = time.monotonic()
        try:
            worker = self.context.pool.worker(process)
            cases = [self.states[name].case.fields() for name in names]
            for name in names:
                self.states[name].verdicts.need(process, op)
            ours = [PROC / str(one) for one in (threading.get_native_id(), worker.pid)]
            waited = waited_s(ours) or 0.0
            worker.send({"op": op, "cases": cases, **more})
            while True:
                event = worker.receive(self._limit_s(current, phase) + more.get("window_s", 0.0))
                self._judged(process, worker.verdicts())
                now = time.monotonic()
                self._charge(current, now - since)
                begun, since = since, now
                waiting, waited = waited, waited_s(ours) or 0.0
                match event["event"]:
                    case "done":
                        if unknown := silent.intersection(self.states):
                            current = min(unknown)  # it would be asked forever
                            raise bad_reply({"event": "done", "case": current})
                        return
                    case "running":
                        current, phase = self._running(event), event["phase"]
                        self._started(current, phase)
                    case "facts":
                        self._state(event).fields.update(event["fields"])
                    case "warm":
                        name, fields = event["case"], self._state(event).fields
                        fields |= {name: event[name] for name in ("graph_reason", "kv_copies")}
                        add_floor(fields, event)
                        if name in self.sampler.samplings:  # not if no latency was requested
                            self.sampler.samplings[name].stationary.append(event["stationary"])
                            self.sampler.samplings[name].call_ms = event["call_ms"]
                    case "samples":
                        state = self._state(event)
                        sampling = self.sampler.samplings.get(event["case"])
                        if sampling is None:
                            raise bad_reply(event)
                        sampling.add(process, event["quantities"], event["spent_s"])
                        done = 1 + self.sampler.done(event["case"])
                        self.context.listener.steps(event["case"], done)
                        silent.discard(event["case"])
                        apart_s = now - begun - max(0.0, waited - waiting)
                        self._sampled(state, apart_s, event)
                    case "watched":
                        self._watched(process, self._state(event), event)
                    case "ended":
                        self._state(event)
                        yield from self._ended(event)
                        if event["poisoned"]:
                            self.context.pool.dismiss(process)
                            failure = WorkerFailure(Status.ERROR, event["reason"])
                            raise WorkerLost(failure, event["case"], phase, None, False)
                    case _:
                        raise bad_reply(event)
        except WorkerFailure as failure:
            self._charge(current, time.monotonic() - since)
            if failure.status is Status.TIMEOUT and phase:
                what = "" if current else "the exact result took "
                failure.reason = (
                    f"{what}more than {self._limit_s(current, phase):g} s in one step"
                    f"{hanging_launch(worker)}; raise it with --timeout, or make the case smaller"
                )
            log_tail = self.context.pool.dismiss(process) or failure.log_tail
            again = worker is not None and failure.status is not Status.TIMEOUT
            raise WorkerLost(failure, current, phase, log_tail, again) from None

    def _state(self, event: Mapping[str, Any]) -> CaseState:
        """Of the case that an event is about. Raises WorkerFailure if it is not being measured."""
        if event["case"] not in self.states:
            raise bad_reply(event)
        return self.states[event["case"]]

    def _running(self, event: Mapping[str, Any]) -> str | None:
        """The case that runs now; None: our own work."""
        name: str | None = event["case"]
        if name is not None and name not in self.known:
            raise bad_reply(event)
        return name

    def _judged(self, process: int, verdicts: Iterable[Mapping[str, Any]]) -> None:
        """Note what the judge said; of a case that has ended it does not matter any more."""
        for verdict in verdicts:
            if verdict["case"] in self.states:
                self.states[verdict["case"]].verdicts.told.append((process, verdict))

    def _ended(self, event: dict[str, Any]) -> Iterator[Record]:
        state = self.states.pop(event["case"])
        self.sampler.drop(event["case"])
        status, reason = Status(event["status"]), event["reason"]
        if complaint := state.verdicts.complaint:
            status, reason = Status.INCORRECT, complaint
        # Others may have used the memory, or broken the process, or worked while a call was timed.
        others = (
            (status is Status.OOM and not self._too_large(state))
            or (status is Status.ERROR and state.checked and not event.get("own_doing"))
            or (event.get("by_time") and not complaint)
        )
        if others and self.retry_alone is not None:
            self.retry_alone.append(state.case)
            return
        yield self.record(state, status, reason, event["phase"], event["log_tail"])

    def _watched(self, process: int, state: CaseState, event: dict[str, Any]) -> None:
        if event["window"] is not None:
            state.windows.append({"process": process, **event["window"]})
        state.tables |= event["tables"]
        state.missing = {**(state.missing or {}), **event["missing"]}

    def _too_large(self, state: CaseState) -> bool:
        """Whether the case is known not to fit even alone."""
        peak = state.fields.get("predicted_peak_bytes")
        return peak is not None and peak + state.fields["input_bytes"] > self.config.budget_bytes

    def _sampled(self, state: CaseState, ours_s: float, event: Mapping[str, Any]) -> None:
        """Note whether results repeat, and the seconds of a block by our clock and the worker's: on
        a CPU the readings themselves; on a GPU a block has more than those.
        """
        own = "spent_s" if self.config.device == "cpu" else "block_s"
        state.clocks.append((ours_s, event[own]))
        state.repeated(event.get("repeats_exactly"))

    def _started(self, name: str | None, phase: str) -> None:
        state = self.states.get(name or "")
        if state is not None and state.started_utc is None:
            state.started_utc = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.context.listener.running(name or "exact result", phase)

    def _limit_s(self, name: str | None, phase: str) -> float:
        """How long one step may take: preparing, one checked call, a warm-up, a block."""
        times = REFERENCE_TIMES if name is None else COMPILE_TIMES if phase == "compile" else 1
        return self.config.timeout_s * times

    def _charge(self, name: str | None, seconds: float) -> None:
        if name in self.states:
            self.states[name].spent_s += seconds

    # ---- records ---------------------------------------------------------------------------------

    def record(
        self,
        state: CaseState,
        status: Status,
        reason: str = "",
        phase: str = "",
        log_tail: str | None = None,
    ) -> Record:
        values: dict[str, Any] = {"phase": phase, "log_tail": log_tail}
        values |= {"started_utc": state.started_utc}
        values |= {"spent_s": state.spent_s} if state.started_utc else {}
        if status is Status.OK:
            sampling = self.sampler.samplings.get(state.case.id)
            if sampling is not None and sampling.block_ms:
                values |= {"session": self.session, **sampling.fields()}
                if impossible := self._impossible(state, values):
                    return self.record(state, Status.ERROR, impossible, "latency")
                values |= launch_flags(state.fields | values)
            values |= {"windows": state.windows or None, "tables": state.tables or None}
            why = {} if state.windows else self.config.without_windows(state.case.problem)
            values |= {"missing": {**why, **(state.missing or {})} or None}
            if "utilization" in self.config.measure and state.windows:
                tier = tier_of(state.windows, self.config.device, self.config.peaks)
                values |= {"utilization_tier": tier}
        values = state.fields | values | state.verdicts.fields()
        return self.context.record(state.case, status, reason, **values)

    def _impossible(self, state: CaseState, samples: Mapping[str, Any]) -> str:
        """Why the device cannot have done the work in this time; "" if it can."""
        row = {**samples, "exactness": state.fields.get("exactness")}
        shortest = state.fields.get("shortest_call_ms")
        return refutation(state.case.problem, row, self.config.physical_device, shortest)
