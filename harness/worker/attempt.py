"""One phase of one case at a time: whatever a backend raises becomes an event, and the other cases
go on.
"""

import gc
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from ..cases import Case
from ..measure.memory_budget import Budget, is_out_of_memory, out_of_memory_reason
from ..measure.peak_memory import release
from ..nvml import Device
from ..record import Status

Say = Callable[[dict[str, Any]], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all cases of a run share."""

    device: torch.device
    seed: int
    budget_bytes: int
    measure: tuple[str, ...]
    warm_heap: bool
    most_warm_up_s: float
    watched: Device


class Attempts:
    """Makes attempts and says how they end. `forget` is told of a case that failed, so that its
    tensors have no owner left.
    """

    def __init__(self, setting: Setting, say: Say, forget: Callable[[str], object]) -> None:
        self.setting = setting
        self.say = say
        self.forget = forget
        self.budget = Budget(setting.budget_bytes, setting.device)
        self.room_bytes = 0  # beyond the budget, while the members of a group stand side by side

    def make_room(self, extra_bytes: int) -> None:
        """Let cases together use more than the budget of one."""
        self.room_bytes = extra_bytes
        self.budget.tighten(extra_bytes)

    def attempt(self, case: Case, phase: str, work: Callable[[], T]) -> T | None:
        """The one place that catches everything, round one phase of one case; None after the case
        has been ended.
        """
        self.say({"event": "running", "case": case.id, "phase": phase})
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - a backend may raise anything, and the other cases must go on
            self.budget.tighten(self.room_bytes)
            self.forget(case.id)
            if is_out_of_memory(error):
                self.end(
                    case, Status.OOM, out_of_memory_reason(error, self.setting.budget_bytes), phase
                )
            else:
                poisoned = self.poisoned(error)
                self.end(
                    case,
                    Status.ERROR,
                    first_line(error),
                    phase,
                    log_tail=traceback.format_exc(),
                    poisoned=poisoned,
                )
        gc.collect()  # the traceback held the backend's tensors
        release(self.setting.device)
        return None

    def poisoned(self, error: Exception) -> bool:
        """Whether the process is spoilt for good: after an illegal address or a device assert every
        CUDA call fails.
        """
        if self.setting.device.type != "cuda":
            return False
        try:
            torch.cuda.synchronize(self.setting.device)
        except RuntimeError as after:
            return not is_out_of_memory(after)
        return "CUDA error" in str(error) and not is_out_of_memory(error)

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
        event = {
            "event": "ended",
            "case": case.id,
            "status": status,
            "reason": reason,
            "phase": phase,
        }
        self.say({**event, "log_tail": log_tail, "poisoned": poisoned})


def first_line(error: BaseException) -> str:
    text = str(error).strip().split("\n")[0][:500]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
