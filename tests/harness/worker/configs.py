"""What workers of tests share."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from attnbench.harness.cases.case import Case
from attnbench.harness.devices.nvml import Device
from attnbench.harness.measure.clock import clock_for
from attnbench.harness.worker.sampling import Sampling
from attnbench.harness.worker.settings import Settings
from attnbench.harness.worker.steps import Steps


class Unlimited:
    """A budget that limits nothing: the limit would be that of the tests' own process."""

    extra_bytes = 0

    def for_code(self) -> AbstractContextManager[None]:
        return nullcontext()

    def for_our_work(self) -> AbstractContextManager[None]:
        return nullcontext()

    def enforce(self, extra_bytes: int = 0) -> None: ...

    def lift(self) -> None: ...


def settings(**changes: Any) -> Settings:
    usual = {
        "device": torch.device("cpu"),
        "seed": 0,
        "budget_bytes": 1 << 30,
        "budget": Unlimited(),
        "measure": ("latency",),
        "warm_heap": False,
        "cold_caches": False,
        "watched": Device(),
    }
    return Settings(**usual | changes)


def steps_on(device: str, **changes: Any) -> Steps:
    """A worker in this process, configured."""
    usual = {
        "seed": 0,
        "budget_bytes": 1 << 30,
        "measure": ["latency", "memory"],
        "warm_heap": False,
        "cold_caches": False,
    }
    found = Steps(torch.device(device, 0 if device == "cuda" else None))
    found.configure(**usual | changes)
    return found


def sampled(
    cases: list[Case], blocks: int, *, calls: int = 2, **changes: Any
) -> tuple[Sampling, dict[str, list[dict[str, Any]]]]:
    """Cases that were warmed up and timed in some rounds, and what was said of each."""
    config = settings(**changes)
    sampling, said = Sampling(config, clock_for(config.device)), dict[str, list[dict[str, Any]]]()
    for case in cases:
        said[case.id] = [sampling.warm_up(case, 0.02, 0.05)]
    for seed in range(1, blocks + 1):
        for case in cases:
            said[case.id].append(sampling.sample(case.id, seed, calls))
    return sampling, said
