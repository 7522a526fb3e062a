"""What a worker is asked: a method for each request, here or of Sampling, whose result is what its
reply says.
"""

import gc
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ...impls.problem import Problem
from ..cases.case import Case, case_of, wall_of
from ..devices.environment import available_bytes
from ..devices.nvml import nvml_device
from ..measure.clock import Clock, clock_for
from ..measure.memory_budget import Budget
from ..measure.peak_memory import freeze_gc, release
from ..measure.warm_heap import WarmHeap
from ..scenario.preflight import predict
from .check import Checker
from .sampling import Sampling
from .settings import Settings
from .trials import run_study, try_attachment, try_length

Reply = dict[str, Any]
TINY = Problem(batch=1, seq_len=16, d_model=32, heads=2, passes="forward+backward")


class Steps:
    """`fields`: of the row of the case that a step is about, for its end."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.fields: dict[str, Any] = {}
        self.budget_bytes = 0
        self._name = ""
        self._checker: Checker | None = None
        self._settings: Settings | None = None
        self._sampling: Sampling | None = None

    # ---- before cases ----------------------------------------------------------------------------

    def free(self) -> Reply:
        return {"available_bytes": available_bytes(self.device)}

    def open_attachment(self, study: str, attached: Mapping[str, Any], budget_bytes: int) -> Reply:
        return dict(try_attachment(study, attached, budget_bytes, self.device))

    def configure(self, budget_bytes: int, *, warm_heap: bool, **more: Any) -> Reply:
        """The budget counts from what is used now, the clock's buffers included."""
        if warm_heap and self.device.type == "cpu":
            WarmHeap().give_back()  # fixed thresholds: large tensors go whole from the first on
        self.clock: Clock = clock_for(self.device)
        self.budget_bytes = budget_bytes
        self._settings = Settings(
            device=self.device,
            budget_bytes=budget_bytes,
            budget=Budget(budget_bytes, self.device),
            warm_heap=warm_heap,
            watched=nvml_device(self.device),
            **more,
        )
        return {}

    @property
    def settings(self) -> Settings:
        if self._settings is None:
            raise RuntimeError("a step before configure")
        return self._settings

    @property
    def sampling(self) -> Sampling:
        if self._sampling is None:
            self._sampling = Sampling(self.settings, self.clock)
        return self._sampling

    # ---- of a case -------------------------------------------------------------------------------

    def step(self, op: str, case: object = None) -> Callable[..., Reply]:
        """The method for a request; `case`: that it is about, by its id or fields."""
        self.fields = {}
        self._name = str(case["case"] if isinstance(case, Mapping) else case)
        found: Callable[..., Reply] = getattr(self if hasattr(self, op) else self.sampling, op)
        return found

    def draw(self, case: Mapping[str, Any]) -> Reply:
        checker = self._checker = Checker(case_of(case), self.settings, self.clock)
        self.fields = checker.fields
        checker.draw()
        return {"compiles": checker.backend.compiles}

    def check(self, case: str) -> Reply:
        checker, self._checker = self._checker, None
        if checker is None or checker.case.id != case:
            raise RuntimeError("check before draw")
        self.fields = checker.fields
        checker.check()
        del checker
        release(self.device)
        freeze_gc()
        return {"fields": self.fields}

    def warm_up(self, case: Mapping[str, Any], least_s: float, most_s: float) -> Reply:
        return self.sampling.warm_up(case_of(case), least_s, most_s)

    def release(self) -> Reply:
        if self._sampling is not None:
            self._sampling.release()
        return {}

    def forget(self) -> None:
        """After a case has ended: hold none of its tensors; the traceback held them too."""
        self._checker = None
        if self._sampling is not None:
            self._sampling.forget(self._name)
        if self._settings is not None:
            self._settings.budget.enforce(self._settings.budget.extra_bytes)
        gc.collect()
        release(self.device)

    # ---- walls and studies -----------------------------------------------------------------------

    def predict(self, wall: Mapping[str, Any]) -> Reply:
        with self.settings.budget.for_code():
            return predict(wall_of(wall), self.device, self.budget_bytes)

    def trial(self, case: Mapping[str, Any]) -> Reply:
        found: Case = case_of(case)
        return try_length(found, self.settings)

    def study(self, study: Mapping[str, Any], **more: Any) -> Reply:
        return run_study(study, self.settings, **more)
