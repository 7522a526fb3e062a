"""The shortest call, and the cost of a launch."""

import torch

from attnbench.harness.measure import launch
from attnbench.harness.measure.clock import GRAPH_BELOW_MS, Samples, clock_for
from attnbench.harness.measure.launch import launch_ms, shortest_call_ms

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


def test_a_device_that_refuses_has_no_shortest_call():
    class Refuses(FakeClock):
        def timer(self, call, call_ms):
            raise RuntimeError("CUDA error")

    assert shortest_call_ms(Refuses(), CPU) is None


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
