"""The kernel that ran is seen, not assumed."""

import pytest
import torch

from attnbench.harness.worker.observe import Kernel, observed
from attnbench.impls import load
from attnbench.impls.problem import Problem
from attnbench.impls.shared.inputs import make_inputs

PROBLEM = Problem(batch=1, seq_len=32, d_model=32, heads=2)


@pytest.mark.parametrize(
    ("backend", "kernel"),
    [
        ("sdpa:flash", "flash"),
        ("sdpa:math", "math"),
        ("fused", "matmul+softmax"),
        ("naive", "matmul+softmax"),
    ],
)
def test_kernels_are_told_apart(backend, kernel):
    loaded = load(backend)
    call = loaded.prepare(PROBLEM, make_inputs(PROBLEM, torch.device("cpu"), 0), None)
    with torch.no_grad(), loaded.context(PROBLEM):
        output, seen = observed(call)
    assert seen == Kernel(kernel, None)
    assert output.shape == (1, 2, 32, 16)


@pytest.mark.parametrize(("activated", "generation"), [(None, "FA2"), ("FA4", "FA4")])
def test_the_generation_is_that_which_answers_during_the_call(monkeypatch, activated, generation):
    """CUDA's operator without a GPU: it runs on the meta device."""
    state = [None]
    attention = torch.nn.attention
    name = "current_flash_attention_impl"
    monkeypatch.setattr(attention, name, lambda: state[0], raising=False)
    q = torch.empty(1, 2, 32, 16, dtype=torch.float16, device="meta")

    def call():
        state[0] = activated
        try:
            return torch.ops.aten._scaled_dot_product_flash_attention(q, q, q)
        finally:
            state[0] = None

    _, kernel = observed(call)
    assert kernel == Kernel("flash", generation)


def test_attention_over_packed_sequences_names_the_generation_too():
    """On the meta device, as above."""
    pytest.importorskip("torch.nn.attention.varlen")  # defines the operator
    q = torch.empty(4, 2, 16, dtype=torch.float16, device="meta")
    begins = torch.empty(2, dtype=torch.int32, device="meta")
    _, kernel = observed(lambda: torch.ops.torch_attn._varlen_attn(q, q, q, begins, begins, 4, 4))
    assert kernel == Kernel("torch_attn::_varlen_attn", "FA2")


def test_a_pinned_kernel_of_a_newer_generation_is_no_older_one():
    older, newer = Kernel("flash", "FA2"), Kernel("flash", "FA3")
    assert newer.is_pinned("flash3")
    assert newer.is_pinned("flash")
    assert not older.is_pinned("flash3")
    assert not newer.is_pinned("flash4")
    assert not Kernel("math", None).is_pinned("flash3")
    assert (str(older), str(Kernel("math", None))) == ("flash (FA2)", "math")


def test_what_torch_compiled_runs_as_it_was_compiled_while_it_is_looked_at():
    ran = []

    def counting(graph, example_inputs):  # stands for torch's compiler, and needs none
        def compiled(*inputs):
            ran.append(graph)
            return graph(*inputs)

        return compiled

    x = torch.randn(1, 1, 4, 4)
    call = torch.compile(lambda: torch.softmax(x @ x.mT, -1) @ x, backend=counting, fullgraph=True)
    call()
    output, _ = observed(call)
    assert len(ran) == 2
    assert torch.equal(output, call())
