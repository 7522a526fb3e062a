"""The shortest call, and the cost of a launch."""

import pytest
import torch

from attnbench.harness.measure import launch
from attnbench.harness.measure.clock import GRAPH_BELOW_MS, Samples, clock_for
from attnbench.harness.measure.launch import launch_ms, shortest_call_ms
from tests.fakes.cuda.gpu import SHORTEST_S

CPU = torch.device("cpu")


class FakeClock:
    """Calls take `durations_ms`, one each, and none wants a graph."""

    BLOCK_MS = 10.0

    def __init__(self, *durations_ms):
        self.durations_ms = iter(durations_ms)
        self.finished = 0

    def timer(self, call, call_ms):
        assert call_ms > GRAPH_BELOW_MS
        call()
        duration_ms = next(self.durations_ms)

        class Timer:
            graph_reason = None

            def sample(self, calls):
                return Samples(block_ms=[duration_ms] * calls)

        return Timer()

    def finish(self):
        self.finished += 1


def test_the_shortest_call_is_halfway_between_nothing_and_the_smallest_work():
    assert shortest_call_ms(FakeClock(0.1, 0.5), CPU) == 0.3


def test_any_attention_takes_longer_than_the_shortest_call_here():
    clock = clock_for(CPU)
    shortest = shortest_call_ms(clock, CPU)
    q = torch.randn(1, 1, 1, 8)
    with torch.no_grad():
        attention = launch._lowest_ms(
            clock, lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q)
        )
    assert 0 < shortest < attention


def test_a_launch_is_timed_without_waiting_for_it_and_on_a_cpu_there_is_none():
    clock, calls = FakeClock(), []
    found = launch_ms(clock, torch.device("cuda"), lambda: calls.append(clock.finished))
    assert found is not None
    assert found >= 0
    assert calls == [1, 2, 3, 4, 5], "each begins on an idle device"
    assert clock.finished == 6, "and the last has ended"
    assert launch_ms(clock, CPU, lambda: None) is None


# ---- CUDA, on a fake GPU -------------------------------------------------------------------------

CUDA = torch.device("cuda", 0)


def test_on_a_gpu_the_shortest_call_is_half_an_empty_kernel(fake_gpu):
    assert shortest_call_ms(clock_for(CUDA), CUDA) == pytest.approx(0.5 * SHORTEST_S * 1e3)


def test_the_cost_of_a_launch_is_the_hosts_alone(fake_gpu):
    fake_gpu.launch_s = 30e-6

    def call():
        for _ in range(3):
            fake_gpu.launch("mine", 5e-3)

    assert launch_ms(clock_for(CUDA), CUDA, call) == pytest.approx(0.09)
