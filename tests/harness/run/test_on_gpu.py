"""Runs on a real GPU: measured, correct, and out of memory if they must be."""

import json
from pathlib import Path

import pytest

from tests.made_runs import read_rows

pytestmark = pytest.mark.gpu

PLAN = "plan={processes: 1, min_blocks: 2, max_blocks: 3, budget_s: 0.5}"
QUICK = ("--device", "cuda", "--set", PLAN)


def shape(batch, seq_len, d_model, heads, dtype="bf16"):
    sizes = ("--batch", batch, "--seq-len", seq_len, "--d-model", d_model, "--heads", heads)
    return (*map(str, sizes), "--dtype", dtype)


def rows_of(done) -> dict[str, dict]:
    return {row["case"]: row for row in read_rows(Path(done.stdout.strip()))}


def statuses(rows):
    return {row["backend"]: row["status"] for row in rows.values()}


@pytest.mark.parametrize("passes", ["forward", "backward", "forward+backward"])
@pytest.mark.parametrize("scope", ["core", "layer"])
def test_every_backend_is_measured_or_says_why_not(attnbench, passes, scope):
    problem = (*shape(2, 512, 512, 8), "--causal")
    backends = "naive,fused,sdpa,sdpa:math,sdpa:flash,sdpa:efficient,sdpa:cudnn"
    done = attnbench(
        "run", "--backends", backends, *problem, "--passes", passes, "--scope", scope, *QUICK
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
    plain = ("naive", "fused", "sdpa-")
    assert {row["status"] for case, row in rows.items() if case.startswith(plain)} == {"ok"}


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_peak_bytes_of_plain_backends_are_the_formula(attnbench, dtype):
    problem = shape(1, "1k,4k", 512, 8, dtype)
    for row in rows_of(attnbench("run", "--backends", "naive,fused", *problem, *QUICK)).values():
        assert abs(row["peak_bytes"] - row["predicted_peak_bytes"]) <= 64, row["case"]


def test_limits_and_flags_of_honest_backends_are_known_and_quiet(attnbench):
    problem = shape(2, "64,4k", 512, 8)
    rows = rows_of(attnbench("run", "--backends", "fused,sdpa:flash", *problem, *QUICK))
    assert set(statuses(rows).values()) == {"ok"}
    for row in rows.values():
        assert 0 < row["shortest_call_ms"] < min(min(block) for block in row["block_ms"][0])
        assert row["launch_ms"] > 0
        assert row["unseen_work"] is False, (row["wall_block_ms"], row["launch_ms"])
        assert row["graph_failed"] is False, row["graph_reason"]
        assert row["late_calls"] is not None
        assert row["workspace_bytes"] is not None
        assert row["outside_bytes"] is not None
    flash = [row for row in rows.values() if row["backend"] == "sdpa:flash"]
    assert {row["kernel_generation"] for row in flash} == {"FA2"}


def test_a_buffer_of_scores_from_prepare_is_workspace_on_a_gpu_too(attnbench):
    problem = shape(1, "1k", 512, 8, "fp32")
    (row,) = rows_of(attnbench("run", "--backends", "keeps_scores", *problem, *QUICK)).values()
    assert row["status"] == "ok", row["reason"]
    assert row["workspace_bytes"] == 8 * 1024 * 1024 * 4


def test_the_budget_ends_fused_and_sdpa_goes_on(attnbench):
    problem = shape(1, "8k", 512, 8)
    limit = ("--set", "limits.memory_gib=1")
    rows = rows_of(attnbench("run", "--backends", "fused,sdpa", *problem, *QUICK, *limit))
    assert statuses(rows) == {"fused": "oom", "sdpa": "ok"}


def test_a_crash_on_the_gpu_costs_one_case(attnbench):
    problem = shape(1, 256, 128, 2)
    rows = rows_of(attnbench("run", "--backends", "crashes,raises,sdpa", *problem, *QUICK))
    assert statuses(rows) == {"crashes": "crashed", "raises": "error", "sdpa": "ok"}


def test_the_environment_names_the_gpu(attnbench):
    problem = shape(1, 256, 128, 2)
    done = attnbench("run", "--backends", "sdpa", *problem, *QUICK)
    facts = json.loads((Path(done.stdout.strip()) / "run.json").read_text())["environment"]
    names = ("device_name", "device_uuid", "compute_capability", "driver", "cuda", "cudnn")
    assert all(facts[name] for name in names)
    assert attnbench("doctor").returncode == 0


def test_counters_of_a_steady_kernel_agree_between_windows_and_name_their_tier(attnbench):
    problem = shape(4, "4k", 1024, 16)
    measure = "measure=[latency,utilization,energy,graphs,kernels]"
    plan = ("--set", "plan.windows=3", "--set", "plan.window_s=2", "--set", measure)
    (row,) = rows_of(attnbench("run", "--backends", "sdpa:flash", *problem, *QUICK, *plan)).values()
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
    for kernel in kernels:
        assert kernel["waves"] is None or kernel["waves"] > 0
        assert kernel["occupancy_ratio"] is None or 0 <= kernel["occupancy_ratio"] <= 1


def test_newer_kernels_of_torch_are_measured_or_say_why_not(attnbench):
    backends = "sdpa:flash3,sdpa:flash4,flex:triton,flex:decode,flex:flash"
    rows = rows_of(attnbench("run", "--backends", backends, *shape(2, 64, 512, 8), *QUICK))
    said = statuses(rows)
    assert {said["flex:triton"], said["flex:decode"]} == {"ok"}, rows
    assert set(said.values()) <= {"ok", "unsupported", "unavailable"}, rows
    for row in rows.values():
        if row["status"] == "ok" and row["backend"].startswith("sdpa"):
            assert f"sdpa:flash{row['kernel_generation'].removeprefix('FA')}" == row["backend"]


def test_pages_are_read_by_a_block_table(attnbench):
    """With one split: torch 2.13 mixes up sequences if it splits keys of pages (pytorch#194167)."""
    pages = ("--kv-seq-len", "1k", "--set", "grid.page=256")
    done = attnbench("run", "--backends", "varlen:one_split", *shape(2, 1, 512, 8), *pages, *QUICK)
    (row,) = rows_of(done).values()
    assert row["status"] == "ok", row["reason"]
    assert row["configuration"] == {"num_splits": 1}
