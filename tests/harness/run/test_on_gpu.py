"""The whole way on a real GPU: measured, exact, and out of memory where it must be. Skips
elsewhere.
"""

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu

QUICK = (
    "--device",
    "cuda",
    "--set",
    "plan={processes: 1, min_blocks: 2, max_blocks: 3, budget_s: 0.5}",
)


def rows_of(done) -> dict[str, dict]:
    rows = [
        json.loads(line)
        for line in (Path(done.stdout.strip()) / "rows.jsonl").read_text().splitlines()
    ]
    return {row["case"]: row for row in rows}


@pytest.mark.parametrize("passes", ["forward", "backward", "forward+backward"])
@pytest.mark.parametrize("scope", ["core", "layer"])
def test_every_backend_is_measured_or_says_why_not(attnbench, passes, scope):
    shape = (
        "--batch",
        "2",
        "--seq-len",
        "512",
        "--d-model",
        "512",
        "--heads",
        "8",
        "--dtype",
        "bf16",
        "--causal",
    )
    backends = "naive,fused,sdpa,sdpa:math,sdpa:flash,sdpa:efficient,sdpa:cudnn"
    done = attnbench(
        "run", "--backends", backends, *shape, "--passes", passes, "--scope", scope, *QUICK
    )
    assert done.returncode == 0, done.stderr
    rows = rows_of(done)
    assert len(rows) == 7
    for row in rows.values():
        assert row["status"] in ("ok", "unsupported"), row
        if row["status"] == "ok":
            assert row["device"] == "cuda"
            assert row["error_ratio"] <= 2
            assert row["kernel_requested"] in (None, row["kernel"])
            assert row["peak_source"] == "cuda requested bytes"
            assert len(row["wall_block_ms"][0]) == len(row["block_ms"][0])
    assert {
        row["status"] for case, row in rows.items() if case.startswith(("naive", "fused", "sdpa-"))
    } == {"ok"}


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_peak_bytes_of_plain_backends_are_the_formula(attnbench, dtype):
    shape = (
        "--batch",
        "1",
        "--seq-len",
        "1k,4k",
        "--d-model",
        "512",
        "--heads",
        "8",
        "--dtype",
        dtype,
    )
    for row in rows_of(attnbench("run", "--backends", "naive,fused", *shape, *QUICK)).values():
        assert abs(row["peak_bytes"] - row["predicted_peak_bytes"]) <= 64, row["case"]


def test_the_budget_ends_fused_and_sdpa_goes_on(attnbench):
    shape = (
        "--batch",
        "1",
        "--seq-len",
        "8k",
        "--d-model",
        "512",
        "--heads",
        "8",
        "--dtype",
        "bf16",
    )
    rows = rows_of(
        attnbench("run", "--backends", "fused,sdpa", *shape, *QUICK, "--set", "limits.memory_gib=1")
    )
    assert {row["backend"]: row["status"] for row in rows.values()} == {
        "fused": "oom",
        "sdpa": "ok",
    }


def test_a_crash_on_the_gpu_costs_one_case(attnbench):
    shape = (
        "--batch",
        "1",
        "--seq-len",
        "256",
        "--d-model",
        "128",
        "--heads",
        "2",
        "--dtype",
        "bf16",
    )
    rows = rows_of(attnbench("run", "--backends", "crashes,raises,sdpa", *shape, *QUICK))
    assert {row["backend"]: row["status"] for row in rows.values()} == {
        "crashes": "crashed",
        "raises": "error",
        "sdpa": "ok",
    }


def test_the_environment_names_the_gpu(attnbench):
    shape = (
        "--batch",
        "1",
        "--seq-len",
        "256",
        "--d-model",
        "128",
        "--heads",
        "2",
        "--dtype",
        "bf16",
    )
    done = attnbench("run", "--backends", "sdpa", *shape, *QUICK)
    facts = json.loads((Path(done.stdout.strip()) / "run.json").read_text())["environment"]
    assert all(
        facts[name]
        for name in ("device_name", "device_uuid", "compute_capability", "driver", "cuda", "cudnn")
    )
    assert attnbench("doctor").returncode == 0


def test_counters_of_a_steady_kernel_agree_between_windows_and_name_their_tier(attnbench):
    shape = (
        "--batch",
        "4",
        "--seq-len",
        "4k",
        "--d-model",
        "1024",
        "--heads",
        "16",
        "--dtype",
        "bf16",
    )
    plan = (
        "--set",
        "plan.windows=3",
        "--set",
        "plan.window_s=2",
        "--set",
        "measure=[latency,utilization,energy,graphs,kernels]",
    )
    (row,) = rows_of(attnbench("run", "--backends", "sdpa:flash", *shape, *QUICK, *plan)).values()
    assert row["utilization_tier"] in ("gpm", "busy"), row["missing"]
    name = {"gpm": "sm_active_ratio", "busy": "kernel_busy_ratio"}[row["utilization_tier"]]
    for way in ("eager", "graph"):
        values = [window[name] for window in row["windows"] if window["way"] == way]
        assert len(values) == 3, row["missing"]
        assert min(values) > 0.5
        assert max(values) <= 1.05 * min(values)
    for window in row["windows"]:
        assert window["power_w"] > 50
        assert window["sm_clock_mhz"] > 100
        assert (
            window["sm_occupancy_ratio"] is None
            or window["sm_occupancy_ratio"] <= window["sm_active_ratio"] <= 1.01
        )
    kernels = row["tables"]["kernel_table"]
    assert any("flash" in kernel["name"].lower() for kernel in kernels), kernels
    assert all(kernel["launch_count"] >= 1 for kernel in kernels)
    assert any(kernel["grid"] and kernel["thread_register_count"] for kernel in kernels)
