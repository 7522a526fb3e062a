"""What the sampler reads of the host and of a scripted GPU."""

import os
import subprocess

import psutil
import pytest

from attnbench.harness.telemetry.sources import GPU_READINGS, PERIOD_S, busy_ratio
from tests.conftest import wait_for
from tests.fakes.nvml.driver import H100, UUID
from tests.harness.telemetry.telemetry_lines import headers_of, lines_of, samples_of

MIB = 1 << 20
UNSUPPORTED = "nvmlDeviceGetPowerUsage: this GPU does not offer it"


@pytest.mark.long
def test_the_host_is_measured(timeline, tmp_path):
    timeline.sample("fused", [os.getpid()])
    wait_for(lambda: len(samples_of(tmp_path)) >= 2)
    timeline.pause()
    (header,) = headers_of(tmp_path)
    sample = samples_of(tmp_path)[-1]
    assert lines_of(tmp_path)[0] == header
    assert {**header, "missing": {}} == {
        "kind": "host",
        "uuid": None,
        "period_s": PERIOD_S,
        "board_wide": [],
        "missing": {},
    }
    assert (
        {name for name in sample if sample[name] is None}
        == header["missing"].keys()
        <= {"cpu_clock_mhz"}
    )
    assert 0 <= sample["cpu_ratio"] <= 1
    assert sample["resident_bytes"] == pytest.approx(psutil.Process().memory_info().rss, rel=0.2)
    assert sample["resident_bytes"] < sample["host_used_bytes"] < psutil.virtual_memory().total


@pytest.mark.long
def test_processes_that_have_ended_have_no_memory_and_a_reason(timeline, tmp_path):
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        timeline.sample("fused", [sleeper.pid])
        wait_for(lambda: samples_of(tmp_path))
        sleeper.kill()
    wait_for(lambda: len(headers_of(tmp_path)) == 2)
    wait_for(lambda: samples_of(tmp_path)[-1]["resident_bytes"] is None)
    timeline.pause()
    first, second = headers_of(tmp_path)
    assert "resident_bytes" not in first["missing"]
    assert second["missing"]["resident_bytes"] == "none of the named processes is alive"
    assert samples_of(tmp_path)[0]["resident_bytes"] > 0


def test_busy_time_is_what_is_not_idle():
    before, after = psutil.cpu_times(), psutil.cpu_times()
    start = after._replace(**dict.fromkeys(after._fields, 0.0))
    end = start._replace(user=3.0, guest=3.0, system=1.0, steal=1.0, idle=4.0, iowait=1.0)
    assert busy_ratio(start, end).value == 0.5
    assert busy_ratio(start, start) == (None, "the kernel counts no processor time")
    assert busy_ratio(before, after._replace(idle=before.idle - 1)).value in (None, 1.0)


def test_a_gpu_has_the_drivers_values(gpu_timeline, fake_nvml, tmp_path):
    fake_nvml.write(
        H100 + "power_w 412.5\nsm_clock_mhz 1755\ntemperature_c 64\nevent_reasons 0x4\nbusy_percent"
        " 97\nmemory_used_mib 5000\n"
    )
    gpu_timeline.sample("fused")
    sample = wait_for(lambda: samples_of(tmp_path))[0]
    gpu_timeline.close()
    assert gpu_timeline.failure is None
    assert headers_of(tmp_path) == [
        {"kind": "gpu", "uuid": UUID, "period_s": PERIOD_S, "board_wide": [], "missing": {}}
    ]
    assert {name: sample[name] for name in GPU_READINGS} == {
        "sm_clock_mhz": 1755,
        "memory_clock_mhz": 2619,
        "temperature_c": 64,
        "power_w": 412.5,
        "clock_event_mask": 4,
        "device_used_bytes": 5000 * MIB,
        "kernel_busy_ratio": 0.97,
    }


@pytest.mark.long
def test_what_the_driver_refuses_is_null_with_its_reason(gpu_timeline, fake_nvml, tmp_path):
    fake_nvml.write(
        H100 + "power_w unsupported\nrefuse nvmlDeviceGetUtilizationRates NO_PERMISSION\n"
    )
    gpu_timeline.sample("fused")
    wait_for(lambda: samples_of(tmp_path))
    gpu_timeline.pause()
    header, sample = lines_of(tmp_path)[:2]
    assert header["missing"] == {
        "power_w": UNSUPPORTED,
        "kernel_busy_ratio": "nvmlDeviceGetUtilizationRates: this user may not read it",
    }
    assert {name for name in sample if sample[name] is None} == header["missing"].keys()


@pytest.mark.long
def test_a_gpu_lost_in_the_middle_has_a_reason_and_harms_nothing(gpu_timeline, fake_nvml, tmp_path):
    gpu_timeline.sample("fused")
    wait_for(lambda: samples_of(tmp_path))
    fake_nvml.write(H100 + "lost 1\n")
    wait_for(lambda: samples_of(tmp_path)[-1]["power_w"] is None)
    gpu_timeline.pause()
    assert gpu_timeline.failure is None
    first, second = headers_of(tmp_path)[0], headers_of(tmp_path)[-1]
    assert first["missing"] == {}
    assert second["missing"].keys() == GPU_READINGS.keys()
    assert all("the GPU is lost" in reason for reason in second["missing"].values())
    assert samples_of(tmp_path)[0]["power_w"] == 70
