"""What workers of tests share."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from attnbench.harness.machine.nvml import Device
from attnbench.harness.worker.judge import Judge
from attnbench.harness.worker.judge_client import Ask
from attnbench.harness.worker.measure import Measurer
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


def measurer_here(config: WorkerConfig, say: Callable[[dict[str, Any]], object]) -> Measurer:
    """Its judge is in the same process; `say` hears the verdicts, too."""
    return Measurer(config, say, asking(Judge(say)))


def asking(judge: Judge) -> Ask:
    def ask(
        request: Mapping[str, Any], data: Iterable[memoryview] = (), size: int = 0
    ) -> tuple[dict[str, Any], bytes | bytearray]:
        sent = bytearray(b"".join(data))
        assert len(sent) == size
        return judge.answer(request, sent)

    return ask
