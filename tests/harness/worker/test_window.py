"""Utilization windows where tests/contract/test_gpu_fakes.py has none: on a CPU, of a backend that
crashes. A GPU that is lost: tests/harness/devices/probes.
"""

from collections import Counter
from pathlib import Path

import pytest

from attnbench.harness import scenario
from attnbench.harness.run.listener import Listener
from attnbench.harness.run.start import RunOptions, start_run
from attnbench.harness.scenario.selection import Selection
from tests.conftest import FAKE_BACKENDS
from tests.fakes.nvml.driver import H100
from tests.made_runs import read_rows

pytestmark = pytest.mark.long

COUNTERS = "gpm_metric 2 80\nbusy_percent 99\nsample_period_ms 20\npower_w 400\n"
PLAN = "{processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.1, windows: 1, window_s: 0.25}"


@pytest.fixture
def rows(tmp_path, monkeypatch, fake_nvml):
    """The rows of a small run on the CPU beside a fake driver's GPU."""
    for name, value in fake_nvml.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("ATTNBENCH_BACKENDS", str(FAKE_BACKENDS))

    def measured(backends, script=""):
        fake_nvml.write(H100 + COUNTERS + script)
        shape = {"batch": "1", "seq_len": "64", "d_model": "32", "heads": "2"}
        measure = "measure=[latency, utilization, energy]"
        changes = [*map(scenario.read_change, (f"plan={PLAN}", measure, "device=cpu"))]
        planned = scenario.from_axes({"backends": backends, **shape}, changes)
        options = RunOptions(command=["test"], listener=Listener())
        result = start_run(planned, tmp_path, 0, Selection(), options)
        return {row["backend"]: row for row in read_rows(result.path)}

    return measured


def test_a_crash_in_a_window_leaves_the_others(rows):
    found = rows("dies_when_watched,fused")
    dead = found.pop("dies_when_watched")
    assert (dead["status"], dead["phase"], dead["windows"]) == ("crashed", "utilization", None)
    for row in found.values():
        assert (row["status"], row["utilization_tier"]) == ("ok", "host")
        assert len(row["windows"]) == 1
        assert row["windows"][0]["host_cpu_ratio"] > 0
        assert row["block_ms"] is not None


def test_a_cpu_run_watches_the_host_and_queries_no_gpu(rows, tmp_path: Path):
    calls = tmp_path / "calls"
    for row in rows("fused", f"count_calls {calls}\n").values():
        assert row["utilization_tier"] == "host"
        assert row["windows"][0]["energy_j"] is None
        assert row["missing"]["energy_j"] == "measured on the CPU, no GPU is watched"
    asked = Counter(calls.read_text().split()) if calls.exists() else Counter()
    assert not [name for name in asked if name.startswith(("nvmlDevice", "nvmlGpm"))]
