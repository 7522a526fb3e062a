"""Whole runs with --device cuda on a fake GPU: from the command line to the rows of its workers."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.elements import Card
from attnbench.reports.pages.report import open_report
from tests.conftest import ROOT
from tests.fakes.nvml.driver import H100, UUID, FakeDriver
from tests.made_runs import read_rows

pytestmark = pytest.mark.long

AT_START = ROOT / "tests" / "fakes" / "cuda" / "at_start"
PLAN = "plan={processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.3}"
SHAPE = ("--batch", "1", "--seq-len", "64", "--d-model", "32", "--heads", "2", "--dtype", "fp32")


@pytest.fixture
def run(attnbench: Any, fake_nvml: FakeDriver) -> Any:
    """`attnbench run ...` on the fake GPU and the fake driver: rows by backend, and run.json."""

    def rows(*arguments: str) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
        path = os.pathsep.join(map(str, (AT_START, ROOT / ".package", ROOT)))
        done = attnbench(
            *("run", "--device", "cuda", "--set", PLAN, *arguments),
            env={**fake_nvml.environment, "PYTHONPATH": path, "FAKE_CUDA_KERNEL_S": "1e-4"},
        )
        assert done.returncode in (0, 1), done.stderr
        folder = Path(done.stdout.strip())
        lines = read_rows(folder)
        meta = json.loads((folder / "run.json").read_text()) | {"folder": str(folder)}
        return {row["backend"]: row for row in lines}, meta

    return rows


def cards_of(meta: dict[str, Any]) -> list[Card]:
    return [*open_report([meta["folder"]]).cards]


def test_backends_are_measured_by_the_clock_and_the_counts_of_the_gpu(run: Any) -> None:
    rows, meta = run("--backends", "naive,sdpa:math,keeps_scores,raises", *SHAPE)
    assert {name: row["status"] for name, row in rows.items()} == {
        "naive": "ok",
        "sdpa:math": "ok",
        "keeps_scores": "ok",
        "raises": "error",
    }
    facts = meta["environment"]
    assert facts["device_name"] == "NVIDIA H100 80GB HBM3"
    assert facts["device_uuid"] == UUID
    assert facts["compute_capability"] == "9.0"
    assert facts["driver"] == "550.54.15"
    naive, kept = rows["naive"], rows["keeps_scores"]
    assert naive["device"] == "cuda"
    assert naive["peak_source"] == "cuda requested bytes"
    assert abs(naive["peak_bytes"] - naive["predicted_peak_bytes"]) <= 64
    assert (naive["workspace_bytes"], naive["outside_bytes"]) == (0, 0)
    assert kept["workspace_bytes"] == 2 * 64 * 64 * 4
    assert naive["device_used_bytes"] == 4 << 20, "by the driver"
    times = {
        name: [ms for block in naive[name][0] for ms in block]
        for name in ("block_ms", "hot_block_ms", "graph_block_ms", "wall_block_ms")
    }
    call_ms = times["graph_block_ms"][0]  # one launch: this busy host delays no part of it
    assert call_ms / 0.1 == pytest.approx(round(call_ms / 0.1)), "a whole number of kernels"
    assert times["graph_block_ms"] == pytest.approx([call_ms] * len(times["graph_block_ms"]))
    for name in ("block_ms", "hot_block_ms", "wall_block_ms"):
        assert min(times[name]) >= call_ms - 1e-6
    assert naive["graph_failed"] is False
    assert naive["late_calls"] is not None
    assert naive["shortest_call_ms"] >= 0.001 - 1e-6


def test_windows_have_the_drivers_counters_for_single_calls_and_for_graphs(run: Any) -> None:
    measure = "measure=[latency,utilization,energy,graphs]"
    windows = ("--set", "plan.windows=1", "--set", "plan.window_s=0.5", "--set", measure)
    rows, _ = run("--backends", "naive", *SHAPE, *windows)
    (row,) = rows.values()
    assert row["status"] == "ok", row["reason"]
    assert {window["way"] for window in row["windows"]} == {"eager", "graph"}
    for window in row["windows"]:
        assert window["calls"] > 10
        assert window["sm_clock_mhz"] == 1980
        assert window["power_w"] == pytest.approx(70, rel=0.2)
    assert row["utilization_tier"] in ("gpm", "busy")


def test_backward_passes_of_backends_that_share_inputs_have_graphs(run: Any) -> None:
    rows, _ = run("--backends", "naive,sdpa:math", "--passes", "backward", *SHAPE)
    assert {name: row["status"] for name, row in rows.items()} == {"naive": "ok", "sdpa:math": "ok"}
    for row in rows.values():
        assert row["graph_failed"] is False, row["graph_reason"]
        assert min(row["graph_block_ms"][0][0]) > 0


SMALL = ("grid.seq_len=[64]", "grid.d_model=32", "grid.heads=[1, 2]", "grid.dtype=fp32")
WINDOWS = ("plan.windows=1", "plan.window_s=1")
SETS = [word for one in (*SMALL, *WINDOWS, "limits.memory_gib=1") for word in ("--set", one)]
GPM_METRICS = "gpm 1\ngpm_metric 2 87.5\ngpm_metric 5 62.25\ngpm_metric 10 33\n"


def test_quickstart_reads_the_counters_without_being_asked(run: Any, fake_nvml: FakeDriver) -> None:
    fake_nvml.write(H100 + GPM_METRICS)
    rows, meta = run("quickstart", *SETS)
    assert meta["scenario"]["measure"] == ["latency", "memory", "utilization", "energy"]
    for row in rows.values():
        assert row["status"] == "ok", row["reason"]
        assert row["utilization_tier"] == "gpm"
        (window,) = row["windows"]
        assert window["window_s"] == pytest.approx(1.0, abs=0.5)
        assert (window["sm_active_ratio"], window["any_tensor_ratio"]) == (0.875, 0.6225)
        assert window["energy_j"] > 0
    (card,) = (one for one in cards_of(meta) if one.title == "How busy is the GPU")
    assert "87.5 %" in card.sentence


def test_a_gpu_without_counters_of_its_sms_has_windows_with_the_reason(
    run: Any, fake_nvml: FakeDriver
) -> None:
    fake_nvml.write(H100 + "gpm 0\n")
    rows, meta = run("quickstart", *SETS)
    for row in rows.values():
        assert row["utilization_tier"] == "busy"
        (window,) = row["windows"]
        assert window["sm_active_ratio"] is None
        assert "came with Hopper" in row["missing"]["sm_active_ratio"]
    (card,) = (one for one in cards_of(meta) if one.title == "How busy is the GPU")
    assert "does not tell how many SMs were active" in card.note


def test_measure_leaves_the_counters_out_and_the_rows_say_so(run: Any) -> None:
    rows, _ = run("quickstart", *SETS, "--measure", "latency,memory")
    for row in rows.values():
        assert row["windows"] is None
        assert row["missing"]["windows"] == "no window: measure is latency, memory"
