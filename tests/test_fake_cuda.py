"""The fake GPU refuses what a GPU refuses."""

import fcntl

import pytest
import torch

from tests.fakes.cuda import FakeGpu, HandClock, fake_cuda

CUDA = torch.device("cuda", 0)


@pytest.fixture
def gpu():
    with fake_cuda(FakeGpu(HandClock(), total_bytes=1 << 30)) as gpu:
        yield gpu


def test_kernels_run_one_after_another_while_the_host_goes_on(gpu):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begun_s = gpu.clock.now()
    gpu.launch("first", 1.0)
    start.record()
    gpu.launch("second", 0.25)
    end.record()
    assert gpu.clock.now() - begun_s < 0.001
    assert not start.query()
    with pytest.raises(RuntimeError, match="not ready"):
        start.elapsed_time(end)
    torch.cuda.synchronize()
    assert start.elapsed_time(end) == pytest.approx(250)


def test_operands_and_generators_must_be_on_the_gpu_too(gpu):
    x = torch.ones(4, device=CUDA)
    assert (x.device, x.is_cuda, x.cpu().device.type) == (CUDA, True, "cpu")
    assert (x + torch.tensor(1.0)).device == CUDA, "a number may be anywhere"
    with pytest.raises(RuntimeError, match="same device"):
        x + torch.ones(4)
    with pytest.raises(RuntimeError, match="generator"):
        torch.randn(4, device=CUDA, generator=torch.Generator())
    with pytest.raises(TypeError, match="numpy"):
        x.numpy()


def test_nothing_waits_or_uses_another_stream_while_a_graph_is_captured(gpu):
    def captured(call):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.Stream()):
            call()
        return graph

    x = torch.zeros((), device=CUDA)
    graph = captured(lambda: x.add_(1))
    before = torch.cuda.current_stream()
    for forbidden in (torch.cuda.synchronize, x.item):
        with pytest.raises(RuntimeError, match="CUDA error"):
            captured(forbidden)
        torch.cuda.set_stream(before)
    assert x.item() == 0
    graph.replay()
    graph.replay()
    assert x.item() == 2


def test_memory_ends_at_the_fraction_and_freed_memory_is_given_out_again(gpu):
    torch.cuda.set_per_process_memory_fraction(0.25, CUDA)
    held = torch.empty(200 << 20, dtype=torch.uint8, device=CUDA)
    with pytest.raises(torch.OutOfMemoryError, match=r"Tried to allocate 100\.00 MiB"):
        torch.empty(100 << 20, dtype=torch.uint8, device=CUDA)
    assert held.nbytes == 200 << 20
    del held
    assert torch.empty(250 << 20, dtype=torch.uint8, device=CUDA).nbytes == 250 << 20
    with pytest.raises(TypeError, match="must be `float`"):
        torch.cuda.set_per_process_memory_fraction(1, CUDA)


def test_a_fake_gpu_leaves_nothing_behind():
    before = torch.cuda.Event, torch.Generator, torch.cuda.is_initialized()
    with fake_cuda():
        assert torch.cuda.is_available()
    assert (torch.cuda.Event, torch.Generator, torch.cuda.is_initialized()) == before
    assert torch.ones(2).device.type == "cpu"


def test_in_exclusive_mode_one_process_at_a_time_has_a_context(gpu, tmp_path):
    gpu.exclusive = other = tmp_path / "context"
    with other.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # as another process would
        for use in (torch.cuda.synchronize, lambda: torch.empty(4, device=CUDA)):
            with pytest.raises(RuntimeError, match="busy or unavailable"):
                use()
    assert torch.ones(4, device=CUDA).sum().item() == 4
    with other.open("w") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    gpu.close_context()
