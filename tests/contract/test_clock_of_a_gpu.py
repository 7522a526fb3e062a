"""What is read from a GPU, on one that is scripted: cold and warm times, graphs, counters."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.contract.conftest import Attnbench, only_run, rows
from tests.fakes.nvml.driver import H100, FakeDriver

AT_START = ROOT / "tests" / "fakes" / "cuda" / "at_start"
SHAPE = ("--batch", "1", "--seq-len", "64", "--d-model", "32", "--heads", "2", "--dtype", "fp32")
PLAN = "plan={processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.3, windows: 1, window_s: 0.5}"
COUNTERS = (
    "gpm_metric 1 99\ngpm_metric 2 87.5\ngpm_metric 3 41\ngpm_metric 5 62.25\ngpm_metric 7 60\n"
    "gpm_metric 10 33\npower_w 350\nenergy_step_ms 0\n"
)
WAITS = """
import torch

def prepare(problem, inputs, weights):
    def call():
        torch.cuda.synchronize()  # which no stream allows that is captured
        return torch.nn.functional.scaled_dot_product_attention(*inputs)

    return call
"""


@pytest.fixture
def on_gpu(attnbench: Attnbench, fake_nvml: FakeDriver) -> Any:
    """The rows of `attnbench run --device cuda ...` on an H100 with the counters above, by backend;
    `own`: the text of a backend `own`.
    """
    fake_nvml.write(H100 + COUNTERS)

    def measured(*arguments: object, own: str = "", **env: str) -> dict[str, dict[str, Any]]:
        Path("backends").mkdir()
        Path("backends/own.py").write_text(own)
        path = os.pathsep.join(map(str, (AT_START, ROOT / ".package", ROOT)))
        env = {"ATTNBENCH_BACKENDS": str(Path("backends").absolute()), "PYTHONPATH": path, **env}
        command = ("run", "--device", "cuda", "--set", PLAN, *SHAPE, *arguments, "--runs", "runs")
        env |= {"FAKE_CUDA_KERNEL_S": "1e-3", **fake_nvml.environment}
        done = attnbench(*command, env=env)
        assert done.returncode == 0, done.stderr
        return {row["backend"]: row for row in rows(only_run(Path("runs")))}

    return measured


def test_the_l2_is_cold_before_a_call_and_warm_where_the_name_says_so(on_gpu: Any) -> None:
    row = on_gpu("--backends", "naive", FAKE_CUDA_WARM_RATIO="0.1")["naive"]
    names = ("block_ms", "graph_block_ms", "hot_block_ms")
    cold_ms, graph_ms, hot_ms = (min(ms for one in row[name][0] for ms in one) for name in names)
    assert hot_ms < 0.5 * min(cold_ms, graph_ms)


def test_a_call_that_no_graph_can_hold_says_so(on_gpu: Any) -> None:
    found = on_gpu("--backends", "own,naive", own=WAITS)
    assert found["naive"]["graph_failed"] is False
    assert found["naive"]["graph_block_ms"]
    assert found["own"]["graph_failed"] is True
    assert "captured" in found["own"]["graph_reason"]
    assert found["own"]["graph_block_ms"] is None


def test_counters_have_their_names_and_units(on_gpu: Any) -> None:
    row = on_gpu("--backends", "naive", "--set", "measure=[latency,utilization,energy]")["naive"]
    (window,) = row["windows"]
    ratios = {
        "graphics_ratio": 0.99,
        "sm_active_ratio": 0.875,
        "sm_occupancy_ratio": 0.41,
        "any_tensor_ratio": 0.6225,
        "hmma_ratio": 0.6,
        "dram_bandwidth_ratio": 0.33,
    }
    assert {name: window[name] for name in ratios} == pytest.approx(ratios)
    assert window["sm_clock_mhz"] == 1980
    assert window["power_w"] == pytest.approx(350, rel=0.1)
    assert window["energy_j"] == pytest.approx(350 * window["window_s"], rel=0.2)
