"""Run one phase of one case at a time: whatever a backend raises becomes an event."""

import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from humanize import naturalsize

from ...impls.backend import Backend
from ..cases.case import Case
from ..files.errors import first_line, traceback_end
from ..machine.nvml import Device
from ..measure.clock import now_s
from ..measure.compile_time import CompileTime
from ..measure.left_running import LeftRunning
from ..measure.memory_budget import Budget, is_out_of_memory, out_of_memory_reason
from ..measure.peak_memory import release
from ..measure.process_state import ProcessState
from ..measure.resident_memory import status_bytes
from ..measure.warm_heap import WarmHeap
from ..rows.counted_pages import seen_from_bytes
from ..rows.record import Status

Say = Callable[[dict[str, Any]], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """What all cases of a run share. `watched`: the GPU whose counters are read."""

    device: torch.device
    seed: int
    budget_bytes: int
    measure: tuple[str, ...]
    warm_heap: bool
    first_warm_up_s: float
    max_warm_up_s: float
    watched: Device
    cold_caches: bool = False


class PhaseRunner:
    """Runs phases within the memory budget, and leaves the process as it was.

    `forget` is called with a case that failed, so that nothing holds its tensors any more.
    `kept_heap`: while it keeps what is freed, for all cases.
    """

    def __init__(self, config: WorkerConfig, say: Say, forget: Callable[[str], object]) -> None:
        self.config = config
        self.say = say
        self.forget = forget
        self.budget = Budget(config.budget_bytes, config.device)
        self._ended: set[str] = set()
        self._state = ProcessState()
        self._left = LeftRunning()
        self.kept_heap: WarmHeap | None = None
        self.room_bytes = 0  # beyond the budget, while the cases of a group are measured together

    def make_room(self, extra_bytes: int) -> None:
        """Let cases together use more than the budget of one."""
        self.room_bytes = extra_bytes
        self.budget.enforce(extra_bytes)

    def run(
        self, case: Case, phase: str, work: Callable[[], T], *, block: bool = False
    ) -> T | None:
        """The one place that catches everything; None if the case has ended in this phase.

        `block`: of timed calls, after which nobody waits for threads to come to rest.
        """
        self.end_what_works(phase, but=case)
        self.say({"event": "running", "case": case.id, "phase": phase})
        self._ended.discard(case.id)
        before_bytes = status_bytes("RssAnon") if self.kept_heap else None
        try:
            found = work()
            complaint = self._state.undo() or self._shrunk(before_bytes)
            self._left.note(case)
            if complaint and case.id not in self._ended:
                self.forget(case.id)
                self.end(case, Status.ERROR, complaint, phase, own_doing=True)
            elif not block:
                self.end_what_works(phase)
            if case.id not in self._ended:
                return found
            del found
        except Exception as error:  # noqa: BLE001 - a backend may raise anything; the others go on
            self._state.undo()
            self.budget.enforce(self.room_bytes)
            self.forget(case.id)
            if is_out_of_memory(error):
                reason = out_of_memory_reason(error, self.config.budget_bytes)
                self.end(case, Status.OOM, reason, phase)
            else:
                self.end_with_error(case, error, first_line(error), phase)
        gc.collect()  # the traceback held the backend's tensors
        release(self.config.device)
        return None

    def compiled_ahead(self, case: Case, backend: Backend) -> CompileTime | None:
        """What the backend compiles before `prepare`; None if the case has ended in it."""
        spent = CompileTime()

        def work() -> CompileTime:
            begun_s = now_s()
            with self.budget.for_code():
                backend.compile_ahead(case.problem, self.config.device)
            spent.add((now_s() - begun_s) * 1e3)
            return spent

        return self.run(case, "compile", work) if backend.compiles_ahead else spent

    def end_what_works(self, phase: str, *, but: Case | None = None) -> None:
        """Wait for what cases have started, and end those whose threads or processes work on."""
        for case in self._left.owners:
            if case is but or case.id in self._ended:
                continue
            if reason := self._left.working(case):
                self.forget(case.id)
                self.end(case, Status.ERROR, reason, phase, poisoned=True, own_doing=True)

    def settle(self, phase: str) -> None:
        """At the end of a step of a group: what its cases have started belongs to nobody later."""
        self.end_what_works(phase)
        self._left.forget()

    def _shrunk(self, before_bytes: int | None) -> str:
        """A reason if the kept heap has lost pages; its settings are renewed in any case."""
        if self.kept_heap is None:
            return ""
        self.kept_heap.keep()
        now_bytes = status_bytes("RssAnon")
        if before_bytes is None or now_bytes is None:
            return ""
        if before_bytes - now_bytes < seen_from_bytes("cpu"):
            return ""
        given_back = naturalsize(before_bytes - now_bytes, binary=True)
        return f"gave {given_back} of the heap back, which others' calls fetch anew, page by page"

    def end_with_error(self, case: Case, error: Exception, reason: str, phase: str) -> None:
        """Called while `error` is handled: its traceback goes into the row."""
        log_tail, poisoned = traceback_end(), self._poisoned(error)
        self.end(case, Status.ERROR, reason, phase, log_tail=log_tail, poisoned=poisoned)

    def end(
        self,
        case: Case,
        status: Status,
        reason: str,
        phase: str,
        log_tail: str | None = None,
        *,
        poisoned: bool = False,
        by_time: bool = False,
        own_doing: bool = False,
    ) -> None:
        """`by_time`: times alone say so. `own_doing`: no other case can have caused it."""
        self._ended.add(case.id)
        # Nothing else may run beside what cannot be put back or does not come to rest.
        poisoned = poisoned or self._state.spoiled or bool(self._left.working(case))
        event = {"event": "ended", "case": case.id, "status": status, "reason": reason}
        more = {"poisoned": poisoned, "by_time": by_time, "own_doing": own_doing}
        self.say({**event, "phase": phase, "log_tail": log_tail, **more})

    def _poisoned(self, error: Exception) -> bool:
        """Whether every further CUDA call fails, as after an illegal address or a device assert."""
        if self.config.device.type != "cuda":
            return False
        try:
            torch.cuda.synchronize(self.config.device)
        except RuntimeError as after:
            return not is_out_of_memory(after)
        return "CUDA error" in str(error) and not is_out_of_memory(error)
