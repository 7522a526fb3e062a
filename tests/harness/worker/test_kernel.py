"""The kernel that ran is seen, not assumed."""

import pytest
import torch

from attnbench.harness.worker.kernel import Kernel, kernel_name, observed
from attnbench.impls import load
from attnbench.impls.backend import make_inputs
from attnbench.impls.problem import Problem

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


def test_a_custom_operator_is_named_by_itself():
    assert (
        kernel_name(("aten::mul", "flash_attn::_flash_attn_forward", "aten::add"))
        == "flash_attn::_flash_attn_forward"
    )


def test_no_attention_is_no_kernel():
    assert kernel_name(("aten::add", "aten::mul")) is None


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
