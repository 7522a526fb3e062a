"""The shortest call, and the cost of a launch."""

import pytest
import torch

from attnbench.harness.measure import clock
from attnbench.harness.measure.clock import clock_for, launch_ms, shortest_call_ms
from tests.fakes.cuda.gpu import SHORTEST_S

CPU = torch.device("cpu")


def test_the_shortest_call_is_halfway_between_nothing_and_the_smallest_work(monkeypatch):
    readings = iter((0.1, 0.5))
    monkeypatch.setattr(clock, "_lowest_ms", lambda clock, call: next(readings))
    assert shortest_call_ms(clock_for(CPU), CPU) == 0.3


def test_any_attention_takes_longer_than_the_shortest_call_here():
    here = clock_for(CPU)
    shortest = shortest_call_ms(here, CPU)
    q = torch.randn(1, 1, 1, 8)
    with torch.no_grad():
        attention = clock._lowest_ms(
            here, lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q)
        )
    assert 0 < shortest < attention


# ---- CUDA, on a fake GPU -------------------------------------------------------------------------

CUDA = torch.device("cuda", 0)


def test_on_a_gpu_the_shortest_call_is_half_an_empty_kernel(fake_gpu):
    assert shortest_call_ms(clock_for(CUDA), CUDA) == pytest.approx(0.5 * SHORTEST_S * 1e3)


def test_the_cost_of_a_launch_is_the_hosts_alone_on_an_idle_device(fake_gpu):
    fake_gpu.launch_s, was_idle = 30e-6, []

    def call():
        was_idle.append(fake_gpu.current.free_s <= fake_gpu.clock.now())
        for _ in range(3):
            fake_gpu.launch("mine", 5e-3)

    assert launch_ms(clock_for(CUDA), CUDA, call) == pytest.approx(0.09)
    assert was_idle == [True] * clock.LAUNCHES
    assert fake_gpu.current.free_s <= fake_gpu.clock.now(), "and the last has ended"
    assert launch_ms(clock_for(CPU), CPU, lambda: None) is None
