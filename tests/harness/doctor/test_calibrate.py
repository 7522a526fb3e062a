"""Counter checks through a scripted driver; a calibration from the command line to its file."""

import json
import sys
import time
from types import SimpleNamespace

import pytest
import torch

from attnbench.harness.devices.calibration_file import newest_calibration
from attnbench.harness.doctor import calibrate as checks
from attnbench.harness.doctor.calibrate import Range, calibrate, check_peak, disorder
from attnbench.harness.doctor.peaks import SIZES, Peak, Sizes
from tests.conftest import environment, ran
from tests.fakes.nvml.driver import H100, UUID

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("found", "outcome", "reason"),
    [
        (0.5, "ok", ""),
        (0.41, "ok", ""),
        (0.39, "off", "something runs"),
        (None, "not measured", "no such counter"),
    ],
)
def test_a_check_has_the_expected_range_and_a_reason_if_it_failed(found, outcome, reason):
    check = Range("y", 0.4, 0.6, "something runs").check("x", found, "no such counter")
    assert (check["name"], check["wanted"], check["found"]) == ("x: y", "0.4 to 0.6", found)
    assert (check["verdict"], check["reason"]) == (outcome, reason)


def test_a_part_that_exceeds_its_whole_is_disorder():
    good = {
        "sm_occupancy_ratio": 0.2,
        "sm_active_ratio": 0.9,
        "graphics_ratio": 1.0,
        "hmma_ratio": 0.7,
        "any_tensor_ratio": 0.7,
    }
    assert disorder(good) == 0
    assert disorder(good | {"hmma_ratio": 0.9}) == pytest.approx(0.2)
    assert disorder(good | {"graphics_ratio": None}) is None


def gpu_loads(sm_count=132):
    """Of a GPU with so many SMs, made on the CPU."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "GEMM", 64)
        patch.setattr(torch.cuda, "synchronize", lambda device: None)
        gpu = SimpleNamespace(multi_processor_count=sm_count)
        patch.setattr(torch.cuda, "get_device_properties", lambda device: gpu)
        return [*checks.gpu_loads(torch.device("cpu"))]


def test_one_block_keeps_one_sm_active():
    (one_block,) = (one for one in gpu_loads() if one.name == "one block")
    _, active = one_block.expected
    for ratio, outcome in ((1 / 132, "ok"), (1.0, "off")):
        assert active.check("one block", ratio)["verdict"] == outcome


RUN = f"""
import json
import torch
from attnbench.harness.doctor import calibrate as checks
from attnbench.harness.devices.nvml import Device
from tests.harness.doctor.test_calibrate import gpu_loads
loads = [one._replace(call=checks.idle, device=torch.device("cpu")) for one in gpu_loads(100)]
gpu, checks.WINDOW_S = Device(uuid="{UUID}"), 0.8
print(json.dumps([one for load in loads for one in checks.check_load(load, "cuda", gpu)]))
"""


def outcomes(fake, script):
    """Outcome and reason of each check under a scripted driver."""
    fake.write(script)
    done = ran([sys.executable, "-c", RUN], env=environment(fake.environment))
    assert not done.returncode, done.stderr
    return {check["name"]: (check["verdict"], check["reason"]) for check in json.loads(done.stdout)}


def test_counters_are_read_through_the_driver(fake_nvml):
    values = {1: 100, 2: 1, 3: 0.5, 5: 60, 7: 60, 10: 5}
    metrics = "".join(f"gpm_metric {number} {value}\n" for number, value in values.items())
    found = outcomes(fake_nvml, H100 + metrics + "busy_percent 50\nsample_period_ms 100\n")
    assert {name: outcome for name, (outcome, _) in found.items()} == {
        "idle: kernel_busy_ratio": "off",
        "idle: sm_active_ratio": "ok",
        "one block: kernel_busy_ratio": "off",
        "one block: sm_active_ratio": "ok",
        "half the time: kernel_busy_ratio": "ok",
        "large bf16 product: sm_active_ratio": "off",
        "large bf16 product: any_tensor_ratio": "ok",
        "large bf16 product: hmma_ratio": "ok",
        "large bf16 product: disorder_ratio": "ok",
    }


def test_without_counters_checks_are_not_measured_and_have_the_drivers_reason(old_fake_nvml):
    found = outcomes(old_fake_nvml, H100 + "sample_period_ms 100\n")
    assert found["idle: kernel_busy_ratio"][0] == "ok"
    assert found["one block: sm_active_ratio"][0] == "not measured"
    assert "too old" in found["one block: sm_active_ratio"][1]
    assert found["large bf16 product: disorder_ratio"][0] == "not measured"


def test_gpu_loads_are_made_and_half_the_time_is_idle(monkeypatch):
    slept = []
    loads = {one.name: one for one in gpu_loads()}
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    monkeypatch.setattr(
        torch.cuda, "_sleep", lambda cycles: (slept.append(cycles), time.sleep(checks.ON_S))
    )
    for load in loads.values():
        load.call()
    start = time.perf_counter()
    loads["half the time"].call()
    assert time.perf_counter() - start >= 2 * checks.ON_S
    assert set(slept) == {int(checks.ON_S * 2e9)}


SMALL = Sizes(gemm=128, copy_bytes=4 << 20, warm_up_s=0.01, block_s=0.005, blocks=6, most_s=0.2)


def test_a_cpu_is_calibrated(tmp_path, monkeypatch):
    monkeypatch.setitem(SIZES, "cpu", SMALL)
    monkeypatch.setattr(checks, "WINDOW_S", 0.2)
    found = calibrate("cpu", tmp_path, wait=False)
    assert found["device_uuid"] is None
    assert [*found["peaks"]] == [
        "gemm_fp32_flops_per_s",
        "gemm_bf16_flops_per_s",
        "copy_bytes_per_s",
    ]
    assert all(best > 1e6 for best in found["peaks"].values())
    assert all(len(one["block_ms"]) >= 3 for one in found["samples"].values())
    verdicts = {check["name"]: check["verdict"] for check in found["checks"]}
    assert verdicts["idle: host_busy_cores"] == "ok"
    assert len(found["checks"]) == 5
    line = newest_calibration(tmp_path, None, found["device_name"])
    assert line == json.loads(json.dumps(found))
    assert set(line["specified"].values()) == {None}
    assert newest_calibration(tmp_path, UUID, found["device_name"]) is None


@pytest.mark.parametrize(("stated", "outcome"), [(1e12, "ok"), (0.9e12, "off"), (4e12, "off")])
def test_a_peak_is_checked_against_the_data_sheet(stated, outcome):
    peak = Peak(name="gemm_bf16_flops_per_s", work=1e9, block_ms=[[1.0]] * 4)
    assert [*check_peak(peak, stated)][-1]["verdict"] == outcome


@pytest.mark.gpu
def test_this_gpus_counters_read_what_they_should(tmp_path):
    # In a new process: this one must not keep the GPU, on which others are then measured.
    code = (
        "from pathlib import Path\n"
        "from attnbench.harness.doctor.calibrate import calibrate\n"
        "calibrate('cuda', Path('results'), wait=True)"
    )
    done = ran([sys.executable, "-c", code], cwd=tmp_path, env=environment())
    line = json.loads((tmp_path / "results" / "calibration.jsonl").read_text())
    assert [check for check in line["checks"] if check["verdict"] == "off"] == []
    assert done.returncode == 0, done.stderr
    assert all(line["peaks"].values())
    root = tmp_path / "results"
    assert newest_calibration(root, line["device_uuid"], line["device_name"]) == line
