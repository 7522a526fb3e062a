"""A calibration from the command line to its file; peaks checked against the data sheet."""

import json
import subprocess
import sys

import pytest
import torch

from attnbench.harness.doctor import calibration_checks as checks
from attnbench.harness.doctor.calibrate import calibrate, check_peak
from attnbench.harness.doctor.peaks import Peak, Sizes
from attnbench.harness.files.errors import BadInput, EnvironmentUnmet
from attnbench.harness.machine.calibration_file import FILE, newest_calibration, why_unreadable
from tests.conftest import environment
from tests.fakes.nvml.driver import UUID
from tests.harness.doctor.calibrations import made

pytestmark = pytest.mark.long

SMALL = Sizes(gemm=128, copy_bytes=4 << 20, warm_up_s=0.01, block_s=0.005, blocks=6, most_s=0.2)
# The sizes of a real calibration take too long for a test.
SMALL_CALIBRATION = """
import sys
from attnbench.harness.doctor import checks, peaks
from attnbench.harness.cli.app import main
peaks.CPU_SIZES = peaks.Sizes(
    gemm=64, copy_bytes=1 << 20, warm_up_s=0.01, block_s=0.005, most_s=0.1
)
checks.WINDOW_S = 0.1
sys.argv = ["attnbench", "doctor", "--calibrate", "--device", "cpu", *sys.argv[1:]]
main()
"""


def test_a_cpu_is_calibrated(tmp_path):
    found = calibrate("cpu", tmp_path, wait=False, sizes=SMALL, window_s=0.2)
    assert found.device_uuid is None
    assert [peak.name for peak in found.peaks] == [
        "gemm_fp32_flops_per_s",
        "gemm_bf16_flops_per_s",
        "copy_bytes_per_s",
    ]
    assert all(peak.best_per_s > 1e6 and len(peak.block_ms) >= 3 for peak in found.peaks)
    assert {check.name: check.outcome for check in found.checks}["idle: host_busy_cores"] == "ok"
    assert len(found.checks) == 5
    line = newest_calibration(tmp_path, None, found.device_name)
    assert line == json.loads(json.dumps(found.as_line()))
    assert line["peaks"] == {peak.name: peak.best_per_s for peak in found.peaks}
    assert set(line["specified"].values()) == {None}
    assert newest_calibration(tmp_path, UUID, found.device_name) is None


def test_calibrations_that_cannot_be_read_are_told_from_none(tmp_path):
    assert why_unreadable(tmp_path) == ""
    (tmp_path / FILE).write_text("")
    assert why_unreadable(tmp_path) == ""
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).mkdir()
    assert why_unreadable(tmp_path) == f"{tmp_path / FILE}: cannot be read (not a plain file)"


def test_the_command_prints_tables_or_json(attnbench, tmp_path):
    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-c", SMALL_CALIBRATION, *arguments],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    shown = run()
    assert shown.returncode in (0, 1), shown.stderr
    assert "FLOP/s" in shown.stdout
    assert "Appended to results/calibration.jsonl." in shown.stdout
    printed = run("--json")
    line = json.loads(printed.stdout)
    assert printed.returncode == int(any(check["verdict"] == "off" for check in line["checks"]))
    assert len((tmp_path / "results" / FILE).read_text().splitlines()) == 2


def test_the_exit_code_is_1_if_a_check_is_off():
    assert made().exit_code == 0
    assert made(checks=check_peak(made().peaks[0], 1e12)).exit_code == 1


def test_a_gpu_that_is_not_there_is_refused_with_the_reason(monkeypatch, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(EnvironmentUnmet, match=r"no cuda device: torch .*--device cpu"):
        calibrate("cuda", tmp_path, wait=False)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_refused_before_measuring(tmp_path):
    (tmp_path / "file").write_text("")
    steps = []
    with pytest.raises(BadInput, match="--out DIR"):
        calibrate("cpu", tmp_path / "file", wait=False, step=lambda *step: steps.append(step))
    assert steps == []


@pytest.mark.parametrize(("stated", "outcome"), [(1e12, "ok"), (0.9e12, "off"), (4e12, "off")])
def test_a_peak_is_checked_against_the_data_sheet(stated, outcome):
    peak = Peak(name="gemm_bf16_flops_per_s", work=1e9, block_ms=[[1.0]] * 4)
    assert check_peak(peak, stated)[-1].outcome == outcome


def test_repeats_that_differ_are_off():
    peak = Peak(name="copy_bytes_per_s", work=1.0, block_ms=[[1.0], [3.0], [1.0], [3.0]])
    (check,) = check_peak(peak, None)
    assert check.outcome == "off"


def test_a_peak_that_was_not_measured_is_not_checked():
    peak = Peak(name="copy_bytes_per_s", work=0.0, block_ms=[], reason="CUDA out of memory")
    (check,) = check_peak(peak, 1e9)
    assert (check.outcome, check.reason) == ("not measured", "CUDA out of memory")


@pytest.mark.gpu
def test_this_gpus_counters_read_what_they_should(attnbench, tmp_path):
    # In a new process: this one must not keep the GPU, on which others are then measured.
    done = attnbench("doctor", "--calibrate", "--device", "cuda", "--wait", "--json")
    line = json.loads(done.stdout)
    assert [check for check in line["checks"] if check["verdict"] == "off"] == []
    assert done.returncode == 0
    assert all(line["peaks"].values())
    root = tmp_path / "results"
    assert newest_calibration(root, line["device_uuid"], line["device_name"]) == line


def test_a_gpu_is_calibrated_and_filed_under_its_uuid(fake_gpu, tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "GEMM", 64)
    fake_gpu.kernel_s |= {"mm": 1e-3, "copy_": 1e-3}
    steps = []
    found = calibrate(
        "cuda", tmp_path, wait=False, sizes=SMALL, window_s=0.1, step=lambda *one: steps.append(one)
    )
    assert len(steps) == steps[0][1] == 9
    assert found.device_uuid == f"GPU-{fake_gpu.uuid}"
    assert found.peaks[2].best_per_s == pytest.approx(2 * 128**3 / 1e-3)
    assert newest_calibration(tmp_path, found.device_uuid, found.device_name) is not None
    wrong = {check.name: check.reason for check in found.checks if check.outcome == "off"}
    share = wrong["gemm_bf16_flops_per_s: share of specified"]
    assert share.startswith("far below the data sheet"), "4 GFLOP/s on an H100"
    assert found.exit_code == 1


def test_a_gpu_without_room_for_the_loads_is_refused(fake_gpu, tmp_path):
    fake_gpu.memory.outside_bytes = fake_gpu.memory.total_bytes - (1 << 20)
    with pytest.raises(EnvironmentUnmet, match="H100 80GB HBM3 has too little free memory"):
        calibrate("cuda", tmp_path, wait=False, sizes=SMALL, window_s=0.1)
