"""What the sampler of telemetry costs, against its target: at most 1 % of one core while it
samples, and nothing while it is quiet.
"""

import time
from pathlib import Path

import psutil
import pytest

from attnbench.harness.telemetry.timeline import Timeline

WATCHED_S = 20.0  # processor time is counted in steps of 10 ms, and 1 % of 20 s are 200 ms
MOST_RATIO = 0.01
UUID = "GPU-11111111-2222-3333-4444-555555555555"


def cpu_ratio(pid: int) -> float:
    """Of one core, over the time watched."""
    sampler = psutil.Process(pid)
    before, start_s = sampler.cpu_times(), time.monotonic()
    time.sleep(WATCHED_S)
    after, end_s = sampler.cpu_times(), time.monotonic()
    return (after.user + after.system - before.user - before.system) / (end_s - start_s)


@pytest.fixture(params=["gpu", "host"])
def timeline(request, tmp_path, monkeypatch):
    if request.param == "gpu":
        for name, value in request.getfixturevalue("fake_nvml").environment.items():
            monkeypatch.setenv(name, value)
    timeline = Timeline(tmp_path, UUID if request.param == "gpu" else None)
    timeline.go("bench", [psutil.Process().pid])
    time.sleep(1)  # its start is not what is asked about
    yield timeline
    timeline.close()
    assert timeline.failure is None


def test_the_sampler_takes_at_most_1_percent_of_a_core(benchmark, timeline, tmp_path: Path):
    ratio = benchmark.pedantic(cpu_ratio, args=(timeline.pid,), rounds=1)
    samples = (tmp_path / "telemetry.jsonl").read_text().count("t_ns")
    benchmark.extra_info.update(cpu_ratio=ratio, samples=samples)
    assert samples >= 4 * WATCHED_S
    assert ratio <= MOST_RATIO


def test_silence_is_confirmed_within_10_ms(benchmark, timeline):
    def go_and_quiet():
        timeline.go("bench")
        timeline.quiet()

    timeline.quiet()
    benchmark.pedantic(go_and_quiet, rounds=200)
    assert benchmark.stats.stats.median <= 0.01
