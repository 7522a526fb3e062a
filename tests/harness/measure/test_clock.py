"""Time readings hold the call and nothing else."""

import gc

import pytest
import torch

from attnbench.harness.measure import clock
from attnbench.harness.measure.clock import (
    GRAPH_BELOW_MS,
    CudaClock,
    HostClock,
    Samples,
    clock_for,
)


def test_every_call_is_timed_in_order_and_by_itself(monkeypatch):
    now_ns = 1_000
    durations_ns = iter([2_000_000, 6_000_000, 1_000_001])

    def call():
        nonlocal now_ns
        now_ns += next(durations_ns)

    monkeypatch.setattr(clock, "now_ns", lambda: now_ns)
    samples = HostClock().timer(call, 3.0).sample(3)
    assert samples.block_ms == [2.0, 6.0, 1.000001]
    assert samples.spent_s == pytest.approx(0.009000001)


def test_on_a_cpu_there_is_one_quantity_and_no_graph_is_wanted():
    timer = HostClock().timer(lambda: None, 0.001)
    samples = timer.sample(2)
    assert (
        samples.wall_block_ms,
        samples.hot_block_ms,
        samples.graph_block_ms,
        samples.late_calls,
    ) == (None, None, None, None)
    assert timer.graph_reason is None


def test_a_timer_calls_as_often_as_asked_and_can_be_used_again():
    calls = []
    timer = HostClock().timer(lambda: calls.append(1), 0.001)
    assert calls == []
    assert [len(timer.sample(n).block_ms) for n in (3, 1)] == [3, 1]
    assert len(calls) == 4


def test_the_time_spent_is_that_of_all_quantities():
    samples = Samples(
        block_ms=[1.0, 2.0],
        wall_block_ms=[10.0],
        hot_block_ms=[100.0],
        graph_block_ms=None,
        late_calls=0,
    )
    assert samples.spent_s == pytest.approx(0.113)


def test_no_garbage_is_collected_while_the_clock_runs():
    seen = []
    HostClock().timer(lambda: seen.append(gc.isenabled()), 0.001).sample(2)
    assert seen == [False, False]
    assert gc.isenabled()


def test_garbage_collection_is_back_after_an_error():
    with pytest.raises(ZeroDivisionError):
        HostClock().timer(lambda: 1 / 0, 0.001).sample(1)
    assert gc.isenabled()


def test_the_clock_fits_the_device():
    assert isinstance(clock_for(torch.device("cpu")), HostClock)


@pytest.fixture
def product():
    """A call of 2 * 4096^3 operations. It cannot be faster than 5000 TFLOP/s nor slower than 1
    TFLOP/s on a GPU worth the name.
    """
    x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    x @ x
    return lambda: x @ x


FASTEST_MS, SLOWEST_MS = 2 * 4096**3 / 5e15 * 1e3, 2 * 4096**3 / 1e12 * 1e3


@pytest.mark.gpu
def test_cuda_clock_reads_a_known_delay(product):
    timer = CudaClock(torch.device("cuda")).timer(product, 1.0)
    samples = timer.sample(5)
    assert timer.graph_reason == ""
    for quantity in (
        samples.block_ms,
        samples.wall_block_ms,
        samples.hot_block_ms,
        samples.graph_block_ms,
    ):
        assert quantity is not None
        assert len(quantity) == 5
    assert all(
        FASTEST_MS < ms < SLOWEST_MS
        for ms in samples.block_ms + samples.hot_block_ms + samples.graph_block_ms
    )
    assert min(samples.wall_block_ms) > 0.5 * min(samples.block_ms)
    assert 0 <= samples.late_calls <= 10


@pytest.mark.gpu
def test_a_long_call_has_no_graph_but_a_reason(product):
    timer = CudaClock(torch.device("cuda")).timer(product, 1.1 * GRAPH_BELOW_MS)
    samples = timer.sample(2)
    assert samples.graph_block_ms is None
    assert "10 ms" in timer.graph_reason
    assert len(samples.hot_block_ms) == 2


@pytest.mark.gpu
def test_a_call_that_cannot_be_captured_is_timed_without_a_graph(product):
    timer = CudaClock(torch.device("cuda")).timer(lambda: product().sum().item(), 1.0)
    samples = timer.sample(2)
    assert samples.graph_block_ms is None
    assert timer.graph_reason.startswith("cannot be captured")
    assert all(ms > FASTEST_MS for ms in samples.block_ms)
