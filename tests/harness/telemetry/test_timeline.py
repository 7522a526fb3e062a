"""The parent's end of telemetry: no failure of the sampler breaks a run."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from tests.conftest import environment, wait_for
from tests.harness.telemetry.telemetry_lines import samples_of

PARENT = """
import signal, sys, time
from pathlib import Path
from attnbench.harness.telemetry.timeline import Timeline
timeline = Timeline(Path(sys.argv[1]), None)
timeline.sample("fused")
print(timeline.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.long
def test_the_sampler_dies_with_a_parent_that_is_killed_even_if_it_cannot_run(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, tmp_path],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        sampler = psutil.Process(int(parent.stdout.readline()))
        wait_for(lambda: samples_of(tmp_path))
        for process in (sampler, *sampler.children()):  # its guard, if it had not started yet
            process.suspend()  # it cannot read the end of its requests
        parent.kill()
    wait_for(lambda: not sampler.is_running() or sampler.status() == psutil.STATUS_ZOMBIE)


@pytest.mark.long
def test_a_sampler_that_does_not_answer_is_killed_and_the_run_goes_on(
    timeline, tmp_path, monkeypatch
):
    monkeypatch.setattr("attnbench.harness.telemetry.timeline.PAUSE_S", 0.3)
    timeline.sample("fused")
    timeline.pause()
    timeline.sample("fused")
    sampler = psutil.Process(timeline.pid)
    sampler.suspend()
    timeline.pause()  # waits for no longer than PAUSE_S: it never answers
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
    wait_for(lambda: timeline._sampler.exit_code is not None)
    timeline.sample("fused")
    timeline.pause()
    assert timeline.failure.startswith("SIGKILL")


@pytest.mark.long
def test_telemetry_is_not_written_through_a_link(timeline, tmp_path):
    (tmp_path / "victim").write_text("content")
    (tmp_path / "telemetry.jsonl").symlink_to(tmp_path / "victim")
    timeline.sample("fused")
    wait_for(lambda: timeline._sampler.exit_code is not None)
    timeline.close()
    assert "links are not followed" in timeline.failure
    assert (tmp_path / "victim").read_text() == "content"
