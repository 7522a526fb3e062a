"""Time readings hold the call and nothing else."""

import gc
import time

import pytest
import torch

from attnbench.harness.clock import CudaClock, HostClock, clock_for


def test_every_call_is_timed_in_order_and_by_itself(monkeypatch):
    now_ns = 1_000
    durations_ns = iter([2_000_000, 6_000_000, 1_000_001])

    def call():
        nonlocal now_ns
        now_ns += next(durations_ns)

    monkeypatch.setattr(time, "perf_counter_ns", lambda: now_ns)
    samples = HostClock().sample(call, 3)
    assert samples.block_ms == [2.0, 6.0, 1.000001]
    assert samples.wall_ms is None


def test_no_garbage_is_collected_while_the_clock_runs():
    seen = []
    HostClock().sample(lambda: seen.append(gc.isenabled()), 2)
    assert seen == [False, False]
    assert gc.isenabled()


def test_garbage_collection_is_back_after_an_error():
    with pytest.raises(ZeroDivisionError):
        HostClock().sample(lambda: 1 / 0, 1)
    assert gc.isenabled()


def test_the_clock_fits_the_device():
    assert isinstance(clock_for(torch.device("cpu")), HostClock)


@pytest.mark.gpu
def test_cuda_clock_reads_a_known_delay():
    device = torch.device("cuda")
    clock = CudaClock(device)
    x = torch.randn(4096, 4096, device=device, dtype=torch.bfloat16)
    samples = clock.sample(lambda: x @ x, 5)
    assert len(samples.block_ms) == 5
    assert samples.wall_ms is not None
    # 2 * 4096^3 operations cannot be faster than 5000 TFLOP/s nor slower than 1 TFLOP/s on a GPU worth the name.
    assert all(2 * 4096**3 / 5e15 * 1e3 < ms < 2 * 4096**3 / 1e12 * 1e3 for ms in samples.block_ms)
    assert min(samples.wall_ms) > 0.5 * min(samples.block_ms)
