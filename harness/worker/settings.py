"""What all cases in a worker are measured with."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ..devices.nvml import Device
from ..measure.memory_budget import Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`seed`: of the numbers that `prepare` sees. `watched`: the GPU whose counters are read."""

    device: torch.device
    seed: int
    budget_bytes: int
    budget: Budget
    measure: Sequence[str]
    warm_heap: bool
    cold_caches: bool
    watched: Device
