"""Run one phase of one case at a time: whatever a backend raises becomes an event."""

import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from ..cases.case import Case
from ..files.errors import first_line, traceback_end
from ..machine.nvml import Device
from ..measure.memory_budget import Budget, is_out_of_memory, out_of_memory_reason
from ..measure.peak_memory import release
from ..measure.process_state import ProcessState
from ..measure.stack_watch import StackWatch
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


class PhaseRunner:
    """Runs phases within the memory budget, and leaves the process as it was.

    `forget` is called with a case that failed, so that nothing holds its tensors any more. `files`:
    the source files of backends, which may not read the call stack.
    """

    def __init__(self, config: WorkerConfig, say: Say, forget: Callable[[str], object]) -> None:
        self.config = config
        self.say = say
        self.forget = forget
        self.budget = Budget(config.budget_bytes, config.device)
        self.files: dict[str, str | None] = {}
        self._ended: set[str] = set()
        self._state, self._stack = ProcessState(), StackWatch()
        self.room_bytes = 0  # beyond the budget, while the cases of a group are measured together

    def make_room(self, extra_bytes: int) -> None:
        """Let cases together use more than the budget of one."""
        self.room_bytes = extra_bytes
        self.budget.enforce(extra_bytes)

    def run(
        self, case: Case, phase: str, work: Callable[[], T], *, thorough: bool = True
    ) -> T | None:
        """The one place that catches everything; None if the case has ended in this phase.

        `thorough`: look at all of the process's state afterwards, not only at its settings.
        """
        self.say({"event": "running", "case": case.id, "phase": phase})
        self._ended.discard(case.id)
        try:
            with self._stack.watching(self.files.get(case.backend)):
                found = work()
            changed = self._state.undo(thorough=thorough)
            if case.id in self._ended or not (changed or self._stack.asked):
                return found
            del found
            self.forget(case.id)
            status = Status.ERROR if changed else Status.INCORRECT
            self.end(case, status, changed or self._stack.asked, phase)
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
    ) -> None:
        self._ended.add(case.id)
        event = {"event": "ended", "case": case.id, "status": status, "reason": reason}
        self.say({**event, "phase": phase, "log_tail": log_tail, "poisoned": poisoned})

    def _poisoned(self, error: Exception) -> bool:
        """Whether every further CUDA call fails, as after an illegal address or a device assert."""
        if self.config.device.type != "cuda":
            return False
        try:
            torch.cuda.synchronize(self.config.device)
        except RuntimeError as after:
            return not is_out_of_memory(after)
        return "CUDA error" in str(error) and not is_out_of_memory(error)
