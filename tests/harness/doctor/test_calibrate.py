"""A calibration from the command line to its file; peaks checked against the data sheet."""

import json

import pytest

from attnbench.harness.doctor import calibration_checks as checks
from attnbench.harness.doctor.calibrate import calibrate, check_peak
from attnbench.harness.doctor.peaks import Peak, Sizes
from attnbench.harness.machine.calibration_file import newest_calibration
from tests.fakes.nvml.driver import UUID

pytestmark = pytest.mark.long

SMALL = Sizes(gemm=128, copy_bytes=4 << 20, warm_up_s=0.01, block_s=0.005, blocks=6, most_s=0.2)


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


@pytest.mark.parametrize(("stated", "outcome"), [(1e12, "ok"), (0.9e12, "off"), (4e12, "off")])
def test_a_peak_is_checked_against_the_data_sheet(stated, outcome):
    peak = Peak(name="gemm_bf16_flops_per_s", work=1e9, block_ms=[[1.0]] * 4)
    assert check_peak(peak, stated)[-1].outcome == outcome


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
