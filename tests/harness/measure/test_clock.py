"""Time readings hold the call and nothing else."""

import gc

import pytest
import torch

from attnbench.harness.measure import clock
from attnbench.harness.measure.clock import (
    GRAPH_BELOW_MS,
    CudaClock,
    HostClock,
    clock_for,
    launch_ms,
    shortest_call_ms,
)
from attnbench.harness.measure.graph_capture import captured_graph, overrides_streams
from attnbench.harness.measure.prepared_call import make_gradient, make_tensors, prepare_call
from attnbench.impls import load
from attnbench.impls.problem import Problem
from tests.fakes.cuda.gpu import SHORTEST_S


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


def test_processor_time_is_that_of_the_calls_unless_others_do_the_work(monkeypatch):
    own_ns, all_ns = 0, 0

    def call(own_ms, others_ms):
        nonlocal own_ns, all_ns
        own_ns += round(own_ms * 1e6)
        all_ns += round((own_ms + others_ms) * 1e6)

    monkeypatch.setattr(clock, "thread_ns", lambda: own_ns)
    monkeypatch.setattr(clock, "processor_ns", lambda: all_ns)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    times = iter([(9.0, 9.0), (4.0, 3.0), (5.0, 4.0), (6.0, 5.0)])
    samples = HostClock().timer(lambda: call(*next(times)), 3.0).sample(3, first=True)
    assert (samples.thread_ms, samples.processor_ms) == (5.0, 9.0)
    samples = HostClock().timer(lambda: call(1.0, 3.0), 3.0).sample(3)
    assert (samples.thread_ms, samples.processor_ms) == (None, None)


def test_no_garbage_is_collected_while_the_clock_runs():
    seen = []
    HostClock().timer(lambda: seen.append(gc.isenabled()), 0.001).sample(2)
    assert seen == [False, False]
    assert gc.isenabled()


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
    by_events = (samples.block_ms, samples.hot_block_ms, samples.graph_block_ms)
    assert [len(one) for one in (*by_events, samples.wall_block_ms)] == [5] * 4
    assert all(FASTEST_MS < ms < SLOWEST_MS for readings in by_events for ms in readings)
    assert min(samples.wall_block_ms) > 0.5 * min(samples.block_ms)
    assert 0 <= samples.late_calls <= 10


@pytest.mark.gpu
def test_a_long_call_and_one_that_cannot_be_captured_have_no_graph_but_a_reason(product):
    clock_ = CudaClock(torch.device("cuda"))
    for call, call_ms, reason in (
        (product, 1.1 * GRAPH_BELOW_MS, "10 ms"),
        (lambda: product().sum().item(), 1.0, "cannot be captured"),
    ):
        timer = clock_.timer(call, call_ms)
        samples = timer.sample(2)
        assert samples.graph_block_ms is None
        assert reason in timer.graph_reason
        assert all(ms > FASTEST_MS for ms in samples.block_ms + samples.hot_block_ms)


# ---- CUDA, on a fake GPU -------------------------------------------------------------------------

CUDA = torch.device("cuda", 0)


def kernel(gpu, seconds=90e-6, times=1):
    """A call that launches a kernel some times."""

    def call():
        for _ in range(times):
            gpu.launch("mine", seconds)

    return call


def test_events_enclose_the_kernels_and_neither_the_flush_nor_the_launches(fake_gpu):
    fake_gpu.launch_s = 25e-6
    timer = CudaClock(CUDA).timer(kernel(fake_gpu, times=4), 1.0)
    samples = timer.sample(3, first=True)
    for readings in (samples.block_ms, samples.hot_block_ms, samples.graph_block_ms):
        assert readings == [pytest.approx(0.36)] * 3
    assert samples.first_ms == pytest.approx(0.36)
    # the first kernel starts at once, the others keep the device busy: 25 us to launch it
    assert samples.wall_block_ms == [pytest.approx(0.36 + 0.025)] * 3
    assert (timer.graph_reason, samples.late_calls, samples.unjoined_calls) == ("", 0, 0)


def test_launches_that_take_longer_than_the_kernels_are_not_in_the_time(fake_gpu):
    fake_gpu.launch_s = 70e-6
    timer = CudaClock(CUDA).timer(kernel(fake_gpu, 10e-6, times=5), 1.0)
    samples = timer.sample(4)
    assert samples.block_ms == [pytest.approx(0.05)] * 4
    assert samples.wall_block_ms == [pytest.approx(0.36)] * 4
    assert samples.late_calls == 0


def test_recording_events_takes_the_host_time_too(fake_gpu):
    """On an H200 nearly all calls without a flush began too early while the delay left this out."""
    fake_gpu.launch_s, fake_gpu.event_s = 10e-6, 5e-6
    samples = CudaClock(CUDA).timer(kernel(fake_gpu, 10e-6), 1.0).sample(4)
    assert samples.late_calls == 0


def test_the_l2_is_flushed_before_block_and_graph_readings_only(fake_gpu):
    timer = CudaClock(CUDA).timer(kernel(fake_gpu), 1.0)
    fake_gpu.launched.clear()
    timer.sample(2)
    order = "".join({"zero_": "F", "spin": "d", "mine": "k"}[one] for one in fake_gpu.launched)
    assert order == "kk" + "dk" + "FdkFdk" + "dkdk" + "FkFk"  # wall, delay, block, hot, graph


def test_work_on_a_stream_that_is_not_timed_is_noticed(fake_gpu):
    side = torch.cuda.Stream(CUDA)

    def call():
        fake_gpu.launch("mine", 50e-6)
        with torch.cuda.stream(side):
            fake_gpu.launch("hidden", 3e-3)

    samples = CudaClock(CUDA).timer(call, 2 * GRAPH_BELOW_MS).sample(3)
    assert samples.block_ms == [pytest.approx(0.05)] * 3
    assert samples.unjoined_calls == 6


def test_a_host_that_waits_long_for_an_idle_gpu_takes_it_for_no_hidden_work(fake_gpu, monkeypatch):
    synchronize = torch.cuda.synchronize

    def slow(device):
        synchronize(device)
        fake_gpu.clock.pass_s(0.2e-3)

    monkeypatch.setattr(torch.cuda, "synchronize", slow)
    samples = CudaClock(CUDA).timer(kernel(fake_gpu), 2 * GRAPH_BELOW_MS).sample(3)
    assert samples.unjoined_calls == 0


def test_before_each_call_its_inputs_may_change_and_the_result_of_the_last_is_kept(fake_gpu):
    results = iter(range(100))

    def call():
        fake_gpu.launch("mine", 1e-6)
        return next(results)

    seen = []

    def noted(*, last):
        seen.append(last)

    timer = CudaClock(CUDA).timer(call, 2 * GRAPH_BELOW_MS)
    samples = timer.sample(3, noted)
    assert seen == [False] * 3 + [False, False, True] + [False] * 3  # wall clock, L2 cold, hot
    assert samples.result == 3 + 1 + 2  # the last comes after three and one for the delay
    for apart in (False, True):
        seen.clear()
        timer = HostClock().timer(lambda: next(results), 0.001)
        samples = timer.sample(3, noted, first=apart)
        assert seen == [*[False] * (2 + apart), True]
        assert samples.result == next(results) - 1


def test_a_failed_capture_is_a_reason_and_leaves_the_current_stream_as_it_was(fake_gpu):
    before = torch.cuda.current_stream()

    def call():
        fake_gpu.launch("mine", 50e-6)
        torch.cuda.synchronize()

    timer = CudaClock(CUDA).timer(call, 1.0)
    refused = "CUDA error: operation not permitted when stream is capturing"
    assert timer.graph_reason == f"cannot be captured: {refused}"
    assert torch.cuda.current_stream() == before
    samples = timer.sample(2)
    assert samples.graph_block_ms is None
    assert samples.block_ms == [pytest.approx(0.05)] * 2


@pytest.mark.parametrize("torch_moves_leaves", [True, False])
@pytest.mark.parametrize("scope", ["core", "layer"])
def test_a_backward_pass_is_captured_beside_calls_that_hold_their_graphs(
    fake_gpu, monkeypatch, scope, torch_moves_leaves
):
    """Its leaves' nodes are on the stream of the graph that a call holds, of it or another one."""
    if torch_moves_leaves and not overrides_streams():
        pytest.skip("this torch does not")
    if not torch_moves_leaves:  # as before 2.13
        name = "set_override_stale_capture_stream"
        monkeypatch.delattr(torch.autograd.graph, name, raising=False)
    problem = Problem(batch=1, seq_len=8, d_model=8, heads=2, scope=scope, passes="backward")
    tensors, gradient = make_tensors(problem, CUDA, 0), make_gradient(problem, CUDA, 0)
    calls = [prepare_call(problem, load(name), tensors, gradient) for name in ("naive", "fused")]
    runs = [one.anew() for one in calls]
    for run, one in zip(runs, calls, strict=True):
        found = []
        graph = captured_graph(one.for_graph, lambda call, to=found: to.extend(call()), CUDA)
        gradient.mul_(-1)
        graph.replay()
        assert all(map(torch.equal, found, run()))
    if torch_moves_leaves:
        assert torch._C._override_stale_capture_stream() is False


def test_a_graph_computes_the_call_again_with_the_values_of_now(fake_gpu):
    x = torch.ones(4, 4, device=CUDA)
    out = torch.zeros_like(x)
    graph = captured_graph(lambda: lambda: torch.mm(x, x, out=out), lambda call: call(), CUDA)
    x.fill_(2.0)
    assert out.sum().item() == 64.0  # of the call before the capture
    graph.replay()
    assert out.sum().item() == 256.0


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
