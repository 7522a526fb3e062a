"""The sampler as a process of its own, and the parent's end of it: what is sampled, when, and that
no run is broken by it.
"""

import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from statistics import median

import psutil
import pytest

from attnbench.harness.process.worker_process import WorkerProcess
from attnbench.harness.telemetry.sampler import next_due_ns
from attnbench.harness.telemetry.sources import (
    GPU_READINGS,
    OF_THE_BOARD,
    PERIOD_NS,
    PERIOD_S,
    busy_ratio,
)
from attnbench.harness.telemetry.timeline import Timeline
from tests.conftest import ROOT, environment
from tests.fakes.nvml.driver import H100

UUID = "GPU-11111111-2222-3333-4444-555555555555"
MIB = 1 << 20
UNSUPPORTED = "nvmlDeviceGetPowerUsage: this GPU does not offer it"


@pytest.fixture
def timeline(tmp_path):
    """Of the host, into an empty folder."""
    timeline = Timeline(tmp_path, None)
    yield timeline
    timeline.close()


@pytest.fixture
def gpu_timeline(tmp_path, fake_nvml, monkeypatch):
    for name, value in fake_nvml.environment.items():
        monkeypatch.setenv(name, value)
    timeline = Timeline(tmp_path, UUID)
    yield timeline
    timeline.close()


def lines_of(folder):
    path = folder / "telemetry.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def samples_of(folder):
    return [line for line in lines_of(folder) if "kind" not in line]


def headers_of(folder):
    return [line for line in lines_of(folder) if "kind" in line]


def wait_for(condition, timeout_s=20):
    """What the condition comes to, once it is true."""
    ends_s = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < ends_s, "did not come true in time"
        time.sleep(0.02)
    return found


def test_deadlines_stand_on_a_grid_and_a_stall_is_not_made_up_for():
    assert next_due_ns(0, 0) == next_due_ns(0, PERIOD_NS // 3) == PERIOD_NS
    assert next_due_ns(0, 2 * PERIOD_NS // 3) == 2 * PERIOD_NS
    assert next_due_ns(0, 10 * PERIOD_NS + 1) == 11 * PERIOD_NS


def test_samples_come_at_the_rate_under_the_name_of_what_runs(timeline, tmp_path):
    timeline.sample("fused", [os.getpid()])
    wait_for(lambda: len(samples_of(tmp_path)) >= 11)
    timeline.sample("sdpa", [os.getpid()])
    wait_for(lambda: samples_of(tmp_path)[-1]["what"] == "sdpa")
    timeline.pause()
    samples = samples_of(tmp_path)
    times = [sample["t_ns"] for sample in samples]
    steps = [later - earlier for earlier, later in pairwise(times)]
    assert median(steps) == pytest.approx(PERIOD_NS, rel=0.05)
    assert min(steps) > PERIOD_NS / 4
    assert {sample["what"] for sample in samples} == {"fused", "sdpa"}
    assert timeline.failure is None


def test_a_stalled_sampler_goes_on_without_a_burst(timeline, tmp_path):
    timeline.sample("fused")
    wait_for(lambda: samples_of(tmp_path))
    os.kill(timeline.pid, signal.SIGSTOP)
    before = len(samples_of(tmp_path))
    time.sleep(6 * PERIOD_S)
    os.kill(timeline.pid, signal.SIGCONT)
    time.sleep(2 * PERIOD_S)
    timeline.pause()
    times = [sample["t_ns"] for sample in samples_of(tmp_path)]
    assert max(later - earlier for earlier, later in pairwise(times)) > 5 * PERIOD_NS
    assert len(times) - before <= 4


def test_a_pause_is_confirmed_and_nothing_is_sampled_before_the_next_start(timeline, tmp_path):
    for _ in range(3):
        timeline.sample("fused")
        time.sleep(1.5 * PERIOD_S)
        timeline.pause()
        silent_from_ns, size = time.monotonic_ns(), (tmp_path / "telemetry.jsonl").stat().st_size
        time.sleep(2 * PERIOD_S)
        assert (tmp_path / "telemetry.jsonl").stat().st_size == size
        assert all(sample["t_ns"] < silent_from_ns for sample in samples_of(tmp_path))
    timeline.close()
    assert timeline.failure is None
    assert samples_of(tmp_path)


def test_many_short_phases_do_not_raise_the_rate(gpu_timeline, tmp_path):
    for phase in range(100):
        gpu_timeline.sample(f"phase {phase}")
        gpu_timeline.pause()
    gpu_timeline.close()
    times = [sample["t_ns"] for sample in samples_of(tmp_path)]
    assert gpu_timeline.failure is None
    assert all(later - earlier > PERIOD_NS * 0.9 for earlier, later in pairwise(times))


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


def test_processes_that_have_ended_have_no_memory_and_the_reason_is_told(timeline, tmp_path):
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        timeline.sample("fused", [sleeper.pid])
        wait_for(lambda: samples_of(tmp_path))
        sleeper.kill()
    wait_for(lambda: len(headers_of(tmp_path)) == 2)
    wait_for(lambda: samples_of(tmp_path)[-1]["resident_bytes"] is None)
    timeline.pause()
    first, second = headers_of(tmp_path)
    assert "resident_bytes" not in first["missing"]
    assert second["missing"]["resident_bytes"] == "no process was named that lives"
    assert samples_of(tmp_path)[0]["resident_bytes"] > 0


def test_busy_is_what_is_not_idle_of_all_cores():
    before, after = psutil.cpu_times(), psutil.cpu_times()
    start = after._replace(**dict.fromkeys(after._fields, 0.0))
    end = start._replace(user=3.0, guest=3.0, system=1.0, steal=1.0, idle=4.0, iowait=1.0)
    assert busy_ratio(start, end).value == 0.5
    assert busy_ratio(start, start) == (None, "the kernel counts no processor time")
    assert busy_ratio(before, after._replace(idle=before.idle - 1)).value in (None, 1.0)


def test_a_gpu_gives_what_the_driver_says(gpu_timeline, fake_nvml, tmp_path):
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


def test_an_old_driver_gives_the_same(old_fake_nvml, tmp_path, monkeypatch):
    for name, value in old_fake_nvml.environment.items():
        monkeypatch.setenv(name, value)
    timeline = Timeline(tmp_path, UUID)
    timeline.sample("fused")
    sample = wait_for(lambda: samples_of(tmp_path))[0]
    timeline.close()
    assert headers_of(tmp_path)[0]["missing"] == {}
    assert (sample["temperature_c"], sample["clock_event_mask"]) == (31, 1)


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


def test_a_gpu_lost_in_the_middle_is_told_and_harms_nothing(gpu_timeline, fake_nvml, tmp_path):
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


def test_a_gpu_that_cannot_be_opened_has_its_reason_everywhere(gpu_timeline, fake_nvml, tmp_path):
    fake_nvml.write("refuse nvmlInitWithFlags DRIVER_NOT_LOADED\n")
    gpu_timeline.sample("fused")
    wait_for(lambda: samples_of(tmp_path))
    gpu_timeline.pause()
    assert headers_of(tmp_path)[0]["missing"] == dict.fromkeys(
        GPU_READINGS, "no NVIDIA driver is loaded"
    )


def test_a_part_of_a_gpu_has_its_own_memory_and_the_boards_clocks(fake_nvml, tmp_path, monkeypatch):
    fake_nvml.write(
        H100
        + "mig 1\nmig_device MIG-aaaa gpu_instance 2 memory_total_mib 10240 memory_used_mib 100\n"
    )
    for name, value in fake_nvml.environment.items():
        monkeypatch.setenv(name, value)
    timeline = Timeline(tmp_path, "MIG-aaaa")
    timeline.sample("fused")
    sample = wait_for(lambda: samples_of(tmp_path))[0]
    timeline.close()
    (header,) = headers_of(tmp_path)
    assert (header["uuid"], header["board_wide"]) == ("MIG-aaaa", list(OF_THE_BOARD))
    assert header["missing"].keys() == {"kernel_busy_ratio"}
    assert (sample["device_used_bytes"], sample["sm_clock_mhz"], sample["power_w"]) == (
        100 * MIB,
        1980,
        70,
    )


def test_nothing_is_asked_of_processes_or_of_the_bus(gpu_timeline, fake_nvml, tmp_path):
    fake_nvml.write(H100 + f"count_calls {tmp_path / 'calls'}\n")
    gpu_timeline.sample("fused")
    wait_for(lambda: len(samples_of(tmp_path)) >= 2)
    gpu_timeline.close()
    calls = set((tmp_path / "calls").read_text().split())
    assert "nvmlDeviceGetPowerUsage" in calls
    assert not [call for call in calls if "Process" in call or "Pcie" in call]


def test_a_gpus_sampler_keeps_to_the_last_core(gpu_timeline, tmp_path):
    gpu_timeline.sample("fused")
    wait_for(lambda: samples_of(tmp_path))
    assert os.sched_getaffinity(gpu_timeline.pid) == {max(os.sched_getaffinity(0))}


@pytest.mark.parametrize("uuid", [None, UUID])
def test_the_sampler_imports_no_torch(fake_nvml, tmp_path, monkeypatch, uuid):
    for name, value in fake_nvml.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    sampler = WorkerProcess(
        "tests.harness.telemetry.sampler_modules",
        str(tmp_path / "telemetry.jsonl"),
        *filter(None, [uuid]),
    )
    sampler.wait_ready(60)
    sampler.send({"op": "sample", "what": "x", "pids": []})
    sampler.send({"op": "pause"})
    assert sampler.receive(60) == {"event": "paused"}
    sampler.close()
    assert sampler.log_tail() == "[]\n"


PARENT = """
import signal, sys, time
from pathlib import Path
from attnbench.harness.telemetry.timeline import Timeline
timeline = Timeline(Path(sys.argv[1]), None)
timeline.sample("fused")
print(timeline.pid, flush=True)
time.sleep(60)
"""


def test_the_sampler_dies_with_a_parent_that_is_killed_even_if_it_cannot_run(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, tmp_path],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        sampler = psutil.Process(int(parent.stdout.readline()))
        wait_for(lambda: samples_of(tmp_path))
        sampler.suspend()  # it cannot read the end of its requests
        parent.kill()
    wait_for(
        lambda: not sampler.is_running() or sampler.status() == psutil.STATUS_ZOMBIE, timeout_s=5
    )


def test_a_sampler_that_does_not_answer_is_killed_and_the_run_goes_on(
    timeline, tmp_path, monkeypatch
):
    monkeypatch.setattr("attnbench.harness.telemetry.timeline.PAUSE_S", 0.3)
    timeline.sample("fused")
    timeline.pause()
    timeline.sample("fused")
    sampler = psutil.Process(timeline.pid)
    sampler.suspend()
    start_s = time.monotonic()
    timeline.pause()
    assert time.monotonic() - start_s < 2
    assert not sampler.is_running()
    assert timeline.failure == "the sampler did not answer in time and was ended"
    timeline.sample("sdpa")
    timeline.pause()
    timeline.close()
    assert timeline.failure == "the sampler did not answer in time and was ended"


def test_a_sampler_that_is_killed_ends_telemetry_and_nothing_else(timeline):
    timeline.sample("fused")
    timeline.pause()
    os.kill(timeline.pid, signal.SIGKILL)
    time.sleep(0.1)
    timeline.sample("fused")
    timeline.pause()
    assert timeline.failure.startswith("SIGKILL")


def test_a_bug_of_the_sampler_is_named(timeline):
    timeline.program = "attnbench.harness.no_such_module"
    timeline.sample("fused")
    timeline.pause()
    assert "the sampler ended with exit code 1: " in timeline.failure
    assert "No module named attnbench.harness.no_such_module" in timeline.failure


def test_a_folder_that_is_gone_ends_telemetry_with_a_reason(tmp_path):
    timeline = Timeline(tmp_path / "none", None)
    timeline.sample("fused")
    timeline.pause()
    timeline.close()
    assert timeline.failure == f"{tmp_path / 'none' / 'telemetry.jsonl'}: No such file or directory"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_ends_telemetry_with_a_reason(timeline, tmp_path):
    (tmp_path / "telemetry.jsonl").symlink_to("/dev/full")
    timeline.sample("fused")
    time.sleep(4 * PERIOD_S)
    timeline.close()
    assert timeline.failure == f"{tmp_path / 'telemetry.jsonl'}: No space left on device"


def test_a_second_start_appends_after_a_torn_line(timeline, tmp_path):
    (tmp_path / "telemetry.jsonl").write_text('{"t_ns": 1, "ut')
    timeline.sample("fused")
    wait_for(lambda: (tmp_path / "telemetry.jsonl").read_text().count("\n") >= 3)
    timeline.close()
    torn, header, sample = (tmp_path / "telemetry.jsonl").read_text().splitlines()[:3]
    assert torn == '{"t_ns": 1, "ut'
    assert json.loads(header)["kind"] == "host"
    assert json.loads(sample)["what"] == "fused"


def test_a_timeline_that_never_samples_starts_nothing(timeline, tmp_path):
    timeline.pause()
    timeline.close()
    timeline.close()
    timeline.sample("too late")
    assert timeline.pid is None
    assert timeline.failure is None
    assert list(tmp_path.iterdir()) == []
