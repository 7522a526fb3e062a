"""What workers of tests share."""

from typing import Any

import torch

from attnbench.harness.machine.nvml import Device
from attnbench.harness.worker.phases import WorkerConfig


def worker_config(device: str = "cpu", **changes: Any) -> WorkerConfig:
    usual = {
        "seed": 0,
        "budget_bytes": 1 << 30,
        "measure": (),
        "warm_heap": False,
        "first_warm_up_s": 0.02,
        "max_warm_up_s": 0.1,
        "watched": Device(),
    }
    index = 0 if device == "cuda" else None
    return WorkerConfig(device=torch.device(device, index), **usual | changes)
