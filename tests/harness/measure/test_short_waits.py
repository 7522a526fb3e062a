"""Threads that wait for each other take hardly any processor time while waits are short."""

import os
import time
from pathlib import Path
from statistics import median

import pytest
import torch

from attnbench.harness.measure.short_waits import ShortWaits

CORES = len(os.sched_getaffinity(0))


@pytest.fixture
def team():
    """As many threads as cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(CORES)
    yield
    torch.set_num_threads(before)


def spun_ms():
    """Processor time after a call of several threads, whose workers wait for the next one."""
    x = torch.ones(1 << 20)
    found = []
    for _ in range(5):
        x.add_(1.0)
        begun_ns = of_other_threads_ns()
        time.sleep(0.015)
        found.append((of_other_threads_ns() - begun_ns) / 1e6)
    return median(found)


def of_other_threads_ns():
    """Without this thread's own, whose sleep costs more where the machine is busy."""
    return time.process_time_ns() - time.thread_time_ns()


def spinning_ms():
    """The same once threads spin; those of an earlier team may end late."""
    deadline = time.monotonic() + 2
    while (found := spun_ms()) < 0.1 and time.monotonic() < deadline:
        pass
    return found


def threads():
    return len(list(Path("/proc/self/task").iterdir()))


@pytest.mark.skipif(CORES == 1, reason="one thread waits for nobody")
@pytest.mark.usefixtures("team")
def test_waits_are_short_while_in_force_and_as_before_after_it():
    waits = ShortWaits()
    if not waits.libraries:
        pytest.skip("torch's OpenMP is not libgomp here")
    usual_ms, usual_threads = spinning_ms(), threads()
    waits.begin()
    short_ms = min(spun_ms() for _ in range(5))  # of what another program did not disturb
    assert waits.in_force
    waits.end()
    deadline = time.monotonic() + 1
    while threads() > usual_threads and time.monotonic() < deadline:
        time.sleep(0.005)
    assert threads() == usual_threads
    assert 4 * short_ms < min(usual_ms, spinning_ms())


def test_more_threads_than_cores_are_left_alone(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: CORES + 1)
    waits = ShortWaits()
    waits.begin()
    assert (waits.needless, waits.in_force) == (False, False)
