"""Peak bytes are exact, output is separate from temporaries, and the kernel's count agrees where
it may be compared.
"""

import sys

import pytest
import torch

from attnbench.harness.measure import peak_memory as memory
from attnbench.harness.measure.correctness import output_shape
from attnbench.harness.measure.peak_memory import Peak, peak, resident_peak_bytes, saved_bytes
from attnbench.harness.measure.prepared_call import make_tensors, prepare_call
from attnbench.harness.measure.warm_heap import WarmHeap
from attnbench.impls import Problem, load
from tests.conftest import ROOT, ran

CPU = torch.device("cpu")
MIB = 1 << 20


def nothing():
    return None


def weighed(name: str, problem: Problem, *, resident: bool = False) -> Peak:
    """As the worker weighs a case: after a first call."""
    tensors = make_tensors(problem, CPU, 0)
    subject = prepare_call(
        problem,
        load(name),
        tensors,
        torch.ones(output_shape(problem)) if problem.backward else None,
    )
    with subject.in_force():
        subject.run(subject.setup())
        return peak(subject.setup, subject.run, CPU, resident=resident)


def test_peak_counts_what_was_alive_at_once():
    def call(_):
        a = torch.empty(1000, dtype=torch.uint8)
        b = torch.empty(500, dtype=torch.uint8)
        del a
        return b, torch.empty(200, dtype=torch.uint8)

    assert peak(nothing, call, CPU) == Peak(
        peak_bytes=1500, output_bytes=700, peak_source="allocator events"
    )


def test_what_an_earlier_call_left_in_a_cycle_is_not_freed_in_this_one():
    def leave_a_cycle() -> None:
        left = [torch.zeros(8192, dtype=torch.uint8)]
        left.append(left)

    def call(_: object) -> torch.Tensor:
        tracked = [[] for _ in range(10_000)]  # so many new objects start a collection
        return torch.empty(len(tracked), dtype=torch.uint8)

    leave_a_cycle()
    found = peak(leave_a_cycle, call, CPU)
    assert (found.peak_bytes, found.output_bytes) == (18_192, 10_000)


def test_what_the_forward_pass_leaves_for_the_backward_pass_counts_with_its_output():
    x = torch.ones(100, 10, requires_grad=True)
    sums, exp, total = 4000, 4000, 40
    with torch.enable_grad():  # exp keeps its result, adding up keeps nothing
        assert saved_bytes(lambda: (x + x).exp().sum(0), CPU) == exp + total
        assert saved_bytes(lambda: (x + x).detach().exp().sum(0), CPU) == total
        assert peak(nothing, lambda _: (x + x).exp(), CPU).peak_bytes == sums + exp


def test_what_setup_leaves_counts_and_its_own_peak_does_not():
    def setup():
        torch.empty(10_000, dtype=torch.uint8)
        return torch.empty(300, dtype=torch.uint8)

    found = peak(setup, lambda ready: torch.empty(100, dtype=torch.uint8), CPU)
    assert (found.peak_bytes, found.output_bytes) == (400, 100)


def test_buffers_inside_kernels_are_seen():
    q = torch.randn(1, 2, 64, 16)
    found = peak(nothing, lambda _: torch.nn.functional.scaled_dot_product_attention(q, q, q), CPU)
    assert found.peak_bytes > found.output_bytes  # the kernel's scratch


@pytest.mark.parametrize("name", ["naive", "fused", "sdpa"])
def test_output_is_the_output_or_the_gradients(name):
    q, k = 2 * 40 * 32 * 4, 2 * 24 * 32 * 4
    expected = {"forward": q, "backward": q + 2 * k, "forward+backward": q + 2 * k}
    for passes, bytes_ in expected.items():
        problem = Problem(batch=2, seq_len=40, d_model=32, heads=4, kv_seq_len=24, passes=passes)
        assert weighed(name, problem).output_bytes == bytes_, passes


@pytest.mark.long
@pytest.mark.skipif(WarmHeap().free_bytes() is None, reason="this C library has no mallinfo2")
@pytest.mark.parametrize(
    ("name", "passes"),
    [("fused", "forward+backward"), ("naive", "forward")],
)
def test_the_kernel_agrees_with_the_allocator_where_tensors_are_large(name, passes):
    """In a process of its own, as in a worker: what pytest left in the heap would be taken
    again.
    """
    code = f"""
from attnbench.harness.measure.warm_heap import WarmHeap
from attnbench.impls import Problem
from tests.harness.measure.test_peak_memory import memory, weighed

memory.SLOW_S = 60  # a busy machine does not count
WarmHeap().give_back()
problem = Problem(batch=1, seq_len=2048, d_model=256, heads=4, passes={passes!r})
found = weighed({name!r}, problem, resident=True)
print(found.peak_bytes, found.resident_peak_bytes)
"""
    done = ran([sys.executable, "-c", code], cwd=ROOT, check=True)
    peak_bytes, resident_bytes = map(int, done.stdout.split())
    assert abs(resident_bytes - peak_bytes) <= 2 * MIB + peak_bytes // 100


def test_the_kernel_sees_what_torch_did_not_allocate():
    assert resident_peak_bytes(nothing, lambda _: bytearray(b"x") * (64 * MIB)) in (
        None,
        pytest.approx(64 * MIB, abs=2 * MIB),
    )


def test_a_results_bytes_are_those_of_its_storages():
    x = torch.ones(10, 10)
    assert memory.result_bytes(x) == 400
    assert memory.result_bytes(x[:2]) == 80
    assert memory.result_bytes((x[:2], x[2:])) == 400
    assert memory.result_bytes((x, x.T)) == 400
    assert memory.result_bytes(torch.ones(1).expand(100)) == 4
    assert memory.result_bytes([x, torch.ones(3)]) == 412
    assert memory.result_bytes((x, None)) is None


@pytest.mark.gpu
def test_on_cuda_the_allocator_has_at_least_what_was_asked_for():
    device = torch.device("cuda")
    found = peak(nothing, lambda _: torch.empty(1000, dtype=torch.uint8, device=device), device)
    assert (found.peak_bytes, found.output_bytes, found.peak_source) == (
        1000,
        1000,
        "cuda requested bytes",
    )
    assert 1000 <= found.allocated_peak_bytes <= found.reserved_peak_bytes
    assert found.device_used_bytes is None or found.device_used_bytes > found.reserved_peak_bytes


# ---- CUDA, on a fake GPU -------------------------------------------------------------------------

CUDA = torch.device("cuda", 0)


def bytes_on_gpu(size):
    return torch.empty(size, dtype=torch.uint8, device=CUDA)


def test_on_cuda_peak_and_output_are_what_was_asked_for(fake_gpu):
    held = bytes_on_gpu(10_000)

    def setup():
        bytes_on_gpu(50_000)
        return bytes_on_gpu(300)

    def call(ready):
        a = bytes_on_gpu(1000)
        b = bytes_on_gpu(500)
        del a
        return b, bytes_on_gpu(200)

    found = peak(setup, call, CUDA)
    assert (found.peak_bytes, found.output_bytes) == (300 + 1500, 700)
    assert found.result_bytes == 700
    assert found.peak_source == "cuda requested bytes"
    assert found.allocated_peak_bytes == 512 + 1024 + 512, "in blocks of 512 bytes"
    assert found.reserved_peak_bytes == 0, "it fits into the segment of what was there"
    assert held.nbytes == 10_000
