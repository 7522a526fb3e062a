"""The steady loop: its calls are counted, its watches are open while it runs, and it never runs far
ahead of the device.
"""

import time
from contextlib import contextmanager

import pytest
import torch

from attnbench.harness.measure.steady_loop import as_graph, steady_loop

CPU = torch.device("cpu")


@contextmanager
def noting(notes, count):
    notes.append(count())
    yield
    notes.append(count())


def test_calls_between_the_watches_are_counted():
    made, notes = [], []
    done = steady_loop(
        lambda: made.append(time.sleep(0.002)), 2.0, 0.1, [noting(notes, lambda: len(made))], CPU
    )
    assert notes == [0, done.calls]
    assert done.calls >= 2
    assert done.window_s >= 0.1


@pytest.mark.gpu
def test_a_graph_is_the_same_call():
    x = torch.randn(256, 256, device="cuda")
    out = torch.empty_like(x)
    call = as_graph(lambda: lambda: torch.matmul(x, x, out=out), torch.device("cuda"))
    out.zero_()
    call()
    torch.cuda.synchronize()
    torch.testing.assert_close(out, x @ x)


@pytest.mark.gpu
@pytest.mark.parametrize("size", [256, 4096])
def test_on_a_real_gpu_the_rate_is_that_of_the_call(size):
    device = torch.device("cuda")
    x = torch.randn(size, size, device=device)
    for _ in range(10):
        x @ x
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(100):
        x @ x
    end.record()
    end.synchronize()
    call_ms = start.elapsed_time(end) / 100
    done = steady_loop(lambda: x @ x, call_ms, 0.5, [], device)
    assert done.window_s * 1e3 / done.calls == pytest.approx(call_ms, rel=0.25)


# ---- on a fake GPU -------------------------------------------------------------------------------

CUDA = torch.device("cuda", 0)


@pytest.mark.parametrize("call_ms", [0.05, 2.0, 20.0, 200.0])
def test_the_device_never_waits_for_the_host_which_is_ahead_within_bounds(fake_gpu, call_ms):
    fake_gpu.launch_s = 40e-6
    timeline, ahead_s, done_calls = fake_gpu.current, [], []

    def left_s():
        return timeline.free_s - fake_gpu.clock.now()

    def call():
        ahead_s.append(left_s())
        fake_gpu.launch("mine", call_ms / 1e3)

    def done_now():
        return len(ahead_s) - round(left_s() * 1e3 / call_ms)

    done = steady_loop(call, call_ms, 0.5, [noting(done_calls, done_now)], CUDA)
    assert min(ahead_s[1:]) >= 0
    assert max(ahead_s) * 1e3 <= max(4 * call_ms, 70)
    assert done_calls[1] - done_calls[0] == done.calls, "done while the watches were open"
    assert done_calls[1] < len(ahead_s), "it still has work when the last counter is read"
    assert done.window_s >= 0.5
    assert done.window_s * 1e3 / done.calls == pytest.approx(call_ms, rel=0.1)
    assert left_s() <= 0, "all is done when it returns"


def test_as_a_graph_a_call_of_many_launches_costs_one(fake_gpu):
    fake_gpu.launch_s = 40e-6

    def call():
        for _ in range(10):
            fake_gpu.launch("mine", 10e-6)

    eager = steady_loop(call, 0.1, 0.3, [], CUDA)
    graph = steady_loop(as_graph(lambda: call, CUDA), 0.1, 0.3, [], CUDA)
    assert eager.window_s * 1e3 / eager.calls == pytest.approx(0.4, rel=0.1)
    assert graph.window_s * 1e3 / graph.calls == pytest.approx(0.1, rel=0.1)
