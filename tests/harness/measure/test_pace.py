"""harness/measure/pace.py: rates that this machine can have, without changing it for cases."""

import json

import pytest
import torch

from attnbench.harness.measure import pace as module
from attnbench.harness.measure.pace import pace
from tests.fakes.cuda import FakeGpu

CPU = torch.device("cpu")


def test_there_is_a_rate_for_each_dtype_and_always_for_fp32() -> None:
    found = pace(CPU, ["bf16"])
    rates = found["flops_per_s"]
    assert isinstance(rates, dict)
    assert set(rates) == {"fp32", "bf16"}
    assert all(1e7 < rate < 1e15 for rate in rates.values())
    assert json.loads(json.dumps(found)) == found


# ---- CUDA, on a fake GPU -------------------------------------------------------------------------


def test_on_a_gpu_the_rates_are_those_of_its_kernels(
    fake_gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(module.SIZE, "cuda", 32)
    monkeypatch.setitem(module.MEMORY_BYTES, "cuda", 1 << 20)
    fake_gpu.launch_s = 10e-6
    fake_gpu.kernel_s |= {"mm": 10e-6, "bmm": 2e-3, "add_": 1e-3}
    found = pace(torch.device("cuda", 0), ["bf16"])
    assert found["step_s"] == pytest.approx(20e-6)
    many = 2 * module.MANY * 32**3 / (2e-3 - 10e-6)
    rates = found["flops_per_s"]
    assert isinstance(rates, dict)
    assert rates == {"fp32": pytest.approx(many), "bf16": pytest.approx(many)}
    assert found["bytes_per_s"] == pytest.approx(2 * (1 << 20) / 1.01e-3)
    assert torch.cuda.memory_reserved() == 0, "cases find the memory as if nothing had been here"
