"""When the sampler samples and pauses."""

import json
import os
import signal
import time
from itertools import pairwise
from statistics import median

import pytest

from attnbench.harness.process.worker_process import WorkerProcess
from attnbench.harness.telemetry.sampler import next_due_ns
from attnbench.harness.telemetry.sources import (
    PERIOD_NS,
    PERIOD_S,
)
from tests.conftest import ROOT
from tests.fakes.nvml.driver import UUID
from tests.harness.telemetry.telemetry_lines import samples_of, wait_for
from tests.search_path import searched


def test_deadlines_are_on_a_grid_and_a_stall_is_not_made_up_for():
    assert next_due_ns(0, 0) == next_due_ns(0, PERIOD_NS // 3) == PERIOD_NS
    assert next_due_ns(0, 2 * PERIOD_NS // 3) == 2 * PERIOD_NS
    assert next_due_ns(0, 10 * PERIOD_NS + 1) == 11 * PERIOD_NS


def test_samples_come_at_the_rate_with_the_name_of_what_runs(timeline, tmp_path):
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


@pytest.mark.parametrize("uuid", [None, UUID])
def test_the_sampler_imports_no_torch(fake_nvml, tmp_path, monkeypatch, uuid):
    for name, value in fake_nvml.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", searched(ROOT))
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


def test_a_second_start_appends_after_a_torn_line(timeline, tmp_path):
    (tmp_path / "telemetry.jsonl").write_text('{"t_ns": 1, "ut')
    timeline.sample("fused")
    wait_for(lambda: (tmp_path / "telemetry.jsonl").read_text().count("\n") >= 3)
    timeline.close()
    torn, header, sample = (tmp_path / "telemetry.jsonl").read_text().splitlines()[:3]
    assert torn == '{"t_ns": 1, "ut'
    assert json.loads(header)["kind"] == "host"
    assert json.loads(sample)["what"] == "fused"
