"""harness/machine/pace.py: rates that this machine can have, without changing it for cases."""

import json

import torch

from attnbench.harness.machine.pace import pace

CPU = torch.device("cpu")


def test_there_is_a_rate_for_each_dtype_and_always_for_fp32() -> None:
    found = pace(CPU, ["bf16"])
    rates = found["flops_per_s"]
    assert set(rates) == {"fp32", "bf16"}
    assert all(1e7 < rate < 1e15 for rate in rates.values())
    assert json.loads(json.dumps(found)) == found


# ---- CUDA, on a fake GPU -------------------------------------------------------------------------
