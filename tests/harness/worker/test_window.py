"""Utilization windows of a run: real workers and the real NVML binding under a scripted driver."""

from collections import Counter
from pathlib import Path

import pytest

from attnbench.harness import scenario
from attnbench.harness.run.listener import Listener
from attnbench.harness.run.start import RunOptions, start_run
from attnbench.harness.scenario.selection import Selection
from tests.fakes.nvml.driver import H100, UUID
from tests.made_runs import read_rows

pytestmark = pytest.mark.long

COUNTERS = (
    "gpm_metric 2 80\ngpm_metric 3 40\ngpm_metric 10 30\nbusy_percent 99\nmemory_busy_percent"
    " 20\nsample_period_ms 20\npower_w 400\n"
)
PLAN = "{processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.1, windows: 2, window_s: 0.25}"


@pytest.fixture
def rows(tmp_path, monkeypatch, fake_nvml):
    """The rows of a small run on the CPU that watches the fake driver's GPU."""
    for name, value in fake_nvml.environment.items():
        monkeypatch.setenv(name, value)

    def measured(
        measure="[latency, utilization, energy]",
        gpu_uuid=UUID,
        script=COUNTERS,
        backends="fused,sdpa",
        **more,
    ):
        fake_nvml.write(H100 + script)
        shape = {"batch": "1", "seq_len": "64", "d_model": "32", "heads": "2"}
        changes = [
            f"plan={PLAN}",
            f"measure={measure}",
            "device=cpu",
            *(f"{key.replace('__', '.')}={value}" for key, value in more.items()),
        ]
        planned = scenario.from_axes({"backends": backends, **shape}, changes)
        options = RunOptions(command=["test"], listener=Listener(), gpu_uuid=gpu_uuid)
        result = start_run(planned, tmp_path, 0, Selection(), options)
        return read_rows(result.path)

    return measured


def test_a_watched_gpu_gives_every_window_its_counters(rows):
    for row in rows():
        assert (row["status"], row["utilization_tier"]) == ("ok", "gpm")
        assert len(row["windows"]) == 2
        for window in row["windows"]:
            assert (window["way"], window["process"]) == ("eager", 0)
            assert window["window_s"] >= 0.25
            assert window["calls"] >= 1
            assert (window["sm_active_ratio"], window["kernel_busy_ratio"]) == (0.8, 0.99)
            assert 300 <= window["power_w"] <= 500  # the counter moves in steps
        assert row["missing"]["hmma_ratio"] == "GPM metric 7: this GPU does not offer it"
        assert row["block_ms"] is not None


def test_without_those_counters_the_tier_has_another_name(rows):
    for row in rows(script=COUNTERS + "gpm 0\n"):
        assert row["utilization_tier"] == "busy"
        assert row["windows"][0]["sm_active_ratio"] is None
        assert "came with Hopper" in row["missing"]["sm_active_ratio"]
        assert row["windows"][0]["kernel_busy_ratio"] == 0.99


def test_with_a_lost_gpu_there_are_the_hosts_numbers_and_reasons(rows):
    for row in rows(script=COUNTERS + "lost 1\n"):
        assert (row["status"], row["utilization_tier"]) == ("ok", "host")
        assert "the GPU is lost" in row["missing"]["energy_j"]
        assert row["windows"][0]["host_cpu_ratio"] > 0


def test_a_cpu_run_watches_the_host_and_queries_no_gpu(rows, tmp_path):
    calls = tmp_path / "calls"
    for row in rows(gpu_uuid=None, script=COUNTERS + f"count_calls {calls}\n"):
        assert row["utilization_tier"] == "host"
        assert row["windows"][0]["energy_j"] is None
        assert row["missing"]["energy_j"] == "measured on the CPU, no GPU is watched"
    asked = Counter(calls.read_text().split()) if calls.exists() else Counter()
    assert not [name for name in asked if name.startswith(("nvmlDevice", "nvmlGpm"))]


def test_a_backend_that_crashes_in_a_window_does_not_affect_others(rows, monkeypatch, tmp_path):
    folder = Path(__file__).parents[2] / "fakes" / "backends"
    monkeypatch.setenv("ATTNBENCH_BACKENDS", str(folder))
    for row in rows(backends="fused,dies_when_watched,sdpa"):
        backend = row["backend"]
        if backend == "dies_when_watched":
            assert (row["status"], row["phase"]) == ("crashed", "utilization")
            assert row["windows"] is None
        else:
            assert row["status"] == "ok"
            assert len(row["windows"]) == 2
            assert row["block_ms"] is not None
