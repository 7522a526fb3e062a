"""A calibration from the command line to its file; peaks checked against the data sheet."""

import json

import pytest

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
    assert {check.name: check.verdict for check in found.checks}["idle: host_busy_cores"] == "ok"
    assert len(found.checks) == 5
    line = newest_calibration(tmp_path, None, found.device_name)
    assert line == json.loads(json.dumps(found.as_line()))
    assert line["peaks"] == {peak.name: peak.best_per_s for peak in found.peaks}
    assert set(line["specified"].values()) == {None}
    assert newest_calibration(tmp_path, UUID, found.device_name) is None


@pytest.mark.parametrize(("stated", "outcome"), [(1e12, "ok"), (0.9e12, "off"), (4e12, "off")])
def test_a_peak_is_checked_against_the_data_sheet(stated, outcome):
    peak = Peak(name="gemm_bf16_flops_per_s", work=1e9, block_ms=[[1.0]] * 4)
    assert check_peak(peak, stated)[-1].verdict == outcome


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
