"""Whole runs on a fake GPU: its clock, its counters, and columns that are null where it has none.

torch.cuda and the driver's library are fakes (tests/fakes); commands, workers and files are real.
"""

import fcntl
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.contract.conftest import by_backend, only_run, run_attnbench
from tests.fakes.nvml.driver import H100, UUID, FakeDriver

KERNEL_MS = 0.1
PLAN = "{processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.2, windows: 1, window_s: 0.4}"
MEASURE = "[latency, memory, utilization, energy, graphs, kernels]"
SHAPE = ("--batch", 1, "--seq-len", 64, "--d-model", 32, "--heads", 2, "--dtype", "fp32")
COUNTERS = {  # the driver's number, its percent, our column
    1: (99, "graphics_ratio"),
    2: (87.5, "sm_active_ratio"),
    3: (41, "sm_occupancy_ratio"),
    5: (62.5, "any_tensor_ratio"),
    7: (60, "hmma_ratio"),
    10: (33, "dram_bandwidth_ratio"),
}
POWER_W = 350
BUSY = "busy_percent 97\nmemory_busy_percent 40\nsample_period_ms 20\n"
LOADED = (
    H100
    + "".join(f"gpm_metric {number} {percent}\n" for number, (percent, _) in COUNTERS.items())
    + f"power_w {POWER_W}\nenergy_step_ms 0\nsm_clock_mhz 1755\ntemperature_c 66\n{BUSY}"
)
EXCLUSIVE_PROCESS = "compute_mode 3\n"  # nvml.h, nvmlComputeMode_t


@dataclass(frozen=True, slots=True, kw_only=True)
class OnGpu:
    folder: Path
    code: int
    error: str
    launched: list[str]

    @property
    def rows(self) -> dict[str, dict[str, Any]]:
        return by_backend(self.folder)

    @property
    def windows(self) -> list[dict[str, Any]]:
        return [one for row in self.rows.values() for one in row["windows"]]


def started(
    place: Path, library: Path, script: str, backends: str, **environment: str
) -> "subprocess.CompletedProcess[str]":
    driver = FakeDriver(library=library, script=place / "nvml.txt")
    driver.write(script)
    at_start = ROOT / "tests" / "fakes" / "cuda" / "at_start"
    path = os.pathsep.join(map(str, (at_start, ROOT / ".package", ROOT)))
    return run_attnbench(
        *("run", "--device", "cuda", "--backends", backends, *SHAPE, "--runs", "runs"),
        *("--set", f"plan={PLAN}", "--set", f"measure={MEASURE}"),
        cwd=place,
        backends=True,
        env={
            **driver.environment,
            "PYTHONPATH": path,
            "FAKE_CUDA_KERNEL_S": str(KERNEL_MS / 1e3),
            "FAKE_CUDA_LAUNCHED": str(place / "launched"),
            **environment,
        },
    )


def measured(place: Path, library: Path, script: str, backends: str) -> OnGpu:
    done = started(place, library, script, backends)
    assert done.returncode in (0, 1), done.stderr
    return OnGpu(
        folder=only_run(place / "runs"),
        code=done.returncode,
        error=done.stderr,
        launched=(place / "launched").read_text().splitlines(),
    )


@pytest.fixture(scope="module")
def hopper(nvml_library: Path, tmp_path_factory: pytest.TempPathFactory) -> OnGpu:
    """With GPM. `waits_for_the_gpu` cannot be captured as a graph."""
    place = tmp_path_factory.mktemp("hopper")
    return measured(place, nvml_library, LOADED, "naive,sdpa:math,waits_for_the_gpu")


@pytest.fixture(scope="module")
def older(old_nvml_library: Path, tmp_path_factory: pytest.TempPathFactory) -> OnGpu:
    """Without GPM."""
    return measured(tmp_path_factory.mktemp("older"), old_nvml_library, LOADED, "naive")


def numbers(nested: list[list[list[float]]]) -> list[float]:
    return [ms for process in nested for block in process for ms in block]


def test_cases_are_timed_by_the_gpus_clock_and_counted_by_its_allocator(hopper: OnGpu) -> None:
    facts = json.loads((hopper.folder / "run.json").read_text())["environment"]
    assert (facts["device_name"], facts["device_uuid"]) == ("NVIDIA H100 80GB HBM3", UUID)
    for row in hopper.rows.values():
        assert (row["status"], row["device"], row["device_uuid"]) == ("ok", "cuda", UUID)
        for name in ("block_ms", "hot_block_ms", "wall_block_ms"):
            assert min(numbers(row[name])) > KERNEL_MS, name
        assert row["late_calls"] is not None
        assert row["launch_ms"] > 0
        assert row["peak_source"] == "cuda requested bytes"
    naive = hopper.rows["naive"]
    assert abs(naive["peak_bytes"] - naive["predicted_peak_bytes"]) <= 64
    assert naive["workspace_bytes"] == 0


def test_a_graph_is_a_whole_number_of_kernels(hopper: OnGpu) -> None:
    for backend in ("naive", "sdpa:math"):
        row = hopper.rows[backend]
        assert (row["graph_failed"], row["graph_reason"]) == (False, "")
        # a host that is busy elsewhere delays one or another: none is shorter, and most are exact
        counts = [round(ms / KERNEL_MS, 3) for ms in numbers(row["graph_block_ms"])]
        count = min(counts)
        assert count == round(count) > 1, "no gap and no flush is in it"
        assert 2 * counts.count(count) >= len(counts), counts
        assert min(numbers(row["block_ms"])) >= count * KERNEL_MS - 1e-6


def test_a_call_that_no_graph_can_hold_says_why(hopper: OnGpu) -> None:
    row = hopper.rows["waits_for_the_gpu"]
    assert row["graph_failed"] is True
    assert row["graph_reason"]
    assert row["graph_block_ms"] is None
    assert {one["way"] for one in row["windows"]} == {"eager"}
    assert {one["way"] for one in hopper.rows["naive"]["windows"]} == {"eager", "graph"}


def test_kernels_that_cupti_does_not_show_are_null_with_the_reason(hopper: OnGpu) -> None:
    for row in hopper.rows.values():
        assert row["status"] == "ok", row["reason"]
        assert row["tables"]["kernel_table"] is None, "not known, and not an empty list"
        assert "CUPTI" in row["missing"]["kernel_table"]


def test_cold_calls_find_a_cache_that_was_written_over(hopper: OnGpu) -> None:
    cold = sum(len(numbers(row["block_ms"])) for row in hopper.rows.values())
    assert cold > 0
    assert sum("zero_" in name for name in hopper.launched) >= cold


def test_counters_of_hopper_are_in_their_columns(hopper: OnGpu) -> None:
    assert all(row["windows"] for row in hopper.rows.values())
    assert {row["utilization_tier"] for row in hopper.rows.values()} == {"gpm"}
    for window in hopper.windows:
        for percent, column in COUNTERS.values():
            assert window[column] == pytest.approx(percent / 100), column
        assert window["calls"] > 10
        assert (window["sm_clock_mhz"], window["temperature_c"]) == (1755, 66)


def test_every_block_has_the_clock_that_nvml_read_within_it(hopper: OnGpu) -> None:
    """Triton's kernel cannot be launched here, so its counters are not read."""
    for row in hopper.rows.values():
        readings = [one for process in row["conditions"] for one in process]
        assert readings
        assert {(one["sm_clock_mhz"], one["sm_clock_ratio"]) for one in readings} == {(1755, 1)}
        assert row["throttled_blocks"] == 0


@pytest.mark.parametrize("kind", ["hopper", "older"])
def test_power_is_in_watt_and_energy_is_power_times_time(
    kind: str, request: pytest.FixtureRequest
) -> None:
    run = request.getfixturevalue(kind)
    assert run.windows
    for window in run.windows:
        assert window["power_w"] == pytest.approx(POWER_W, rel=0.1)
        expected = window["power_w"] * window["window_s"]
        assert window["energy_j"] == pytest.approx(expected, rel=0.1)


def test_a_gpu_older_than_hopper_has_no_such_counters_and_says_why(older: OnGpu) -> None:
    row = older.rows["naive"]
    assert row["status"] == "ok", row["reason"]
    assert row["utilization_tier"] == "busy"
    for window in row["windows"]:
        for _, column in COUNTERS.values():
            assert window[column] is None, "not known, and not 0"
            assert row["missing"][column]
        assert window["kernel_busy_ratio"] == pytest.approx(0.97)


def test_a_gpu_in_exclusive_mode_is_measured_since_one_process_at_a_time_has_a_context(
    nvml_library: Path, tmp_path: Path
) -> None:
    """Also where a backend from outside has a worker of its own."""
    holder = {"FAKE_CUDA_EXCLUSIVE": str(tmp_path / "context")}
    backends = "naive,waits_for_the_gpu"
    done = started(tmp_path, nvml_library, LOADED + EXCLUSIVE_PROCESS, backends, **holder)
    assert done.returncode == 0, done.stderr
    rows = by_backend(only_run(tmp_path / "runs"))
    assert {name: row["status"] for name, row in rows.items()} == {
        "naive": "ok",
        "waits_for_the_gpu": "ok",
    }
    assert rows["waits_for_the_gpu"]["beside"] == "sdpa"


def test_a_gpu_that_another_process_holds_in_exclusive_mode_is_refused_with_the_reason(
    nvml_library: Path, tmp_path: Path
) -> None:
    held = tmp_path / "context"
    with held.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        script = LOADED + EXCLUSIVE_PROCESS
        done = started(tmp_path, nvml_library, script, "naive", FAKE_CUDA_EXCLUSIVE=str(held))
    assert done.returncode == 4, done.stderr
    assert "busy or unavailable: another process uses it" in done.stderr
    assert not list(tmp_path.glob("runs/*/rows.jsonl"))


CALIBRATED = {
    "schema": 1,
    "utc": "2026-11-28T10:00:00+00:00",
    "device_uuid": UUID,
    "peaks": {"gemm_fp32_flops_per_s": 5e13, "copy_bytes_per_s": 2e12},
    "checks": [],
}


@pytest.mark.parametrize(("tier", "lines"), [("derived", [CALIBRATED]), ("host", [])])
def test_a_gpu_without_any_counter_has_windows_with_the_reasons(
    tier: str, lines: list[dict[str, Any]], old_nvml_library: Path, tmp_path: Path
) -> None:
    """What is left of its utilization are the FLOPs of a calibrated GPU."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "calibration.jsonl").write_text("".join(map(json.dumps, lines)))
    run = measured(tmp_path, old_nvml_library, H100 + "samples stale\n", "naive")
    row = run.rows["naive"]
    assert (row["status"], row["utilization_tier"]) == ("ok", tier), row["reason"]
    assert row["windows"]
    for window in row["windows"]:
        for column in ("sm_active_ratio", "kernel_busy_ratio"):
            assert window[column] is None
            assert row["missing"][column]
