"""A prefix that all sequences share: the reference, every backend that computes it, its bytes, and
what is refused.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest
import torch
from torch import Tensor

from attnbench.harness.cases.costs import input_bytes, minimal_bytes, work_exps, work_flops
from attnbench.impls import Inputs, Problem, load, make_inputs
from attnbench.impls.backend import leaves
from attnbench.impls.reference import reference, same_dtype_reference
from tests.budget import first
from tests.impls.conftest import BOTTOM_RIGHT, complaints
from tests.impls.peak_formulas.test_peak_bytes import held
from tests.impls.test_reference import dense

CPU = torch.device("cpu")
BACKENDS = ("kv_cache", "kv_cache:blocks", "cascade")
SMALL = Problem(
    batch=3, seq_len=4, kv_seq_len=20, prefix=11, d_model=32, heads=4, kv_heads=2, **BOTTOM_RIGHT
)
TRAINING: dict[str, Any] = {"passes": "forward+backward"}
OFTEN, COUNT = 16, 40


def random_problems(
    dtype: Any, count: int, widths: tuple[int, ...] = (4, 8, 13, 32)
) -> Iterator[Problem]:
    """So many of them: batches, heads, widths, causal or not, with and without gradients."""
    random = Random(dtype)
    for _ in range(count):
        n_q, heads = random.choice((1, 1, 5, random.randint(2, 24))), random.choice((1, 2, 4))
        prefix, own = random.randint(1, 300), n_q + random.choice((0, 1, random.randint(2, 300)))
        width = random.choice(widths)
        yield Problem(
            batch=random.randint(1, 4),
            seq_len=n_q,
            kv_seq_len=prefix + own,
            prefix=prefix,
            d_model=32,
            heads=heads,
            kv_heads=random.choice([one for one in (1, 2, 4) if one <= heads]),
            d_k=width,
            d_v=width if random.random() < 0.8 else width + 2,
            dtype=dtype,
            passes=random.choice(("forward", "forward+backward")),
            **(BOTTOM_RIGHT if random.random() < 0.7 else {}),
        )


def check_backends(problems: Iterator[Problem], device: str) -> dict[str, set[str]]:
    """The passes that each backend ran, of problems that it does not refuse."""
    ran: dict[str, set[str]] = {name: set() for name in BACKENDS}
    for seed, problem in enumerate(problems):
        for name, complaint in complaints(problem, BACKENDS, seed, device).items():
            assert complaint == "", (name, problem)
            ran[name].add(problem.passes)
    return ran


@pytest.mark.parametrize("count", first(1, [OFTEN, COUNT]))
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_backends_are_as_close_as_the_textbook_on_random_problems(dtype: str, count: int) -> None:
    both = {"forward", "forward+backward"}
    ran = check_backends(random_problems(dtype, count), "cpu")
    assert ran == {"kv_cache": both, "kv_cache:blocks": {"forward"}, "cascade": both}


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_backends_are_as_close_as_the_textbook_on_cuda(dtype: str) -> None:
    ran = check_backends(random_problems(dtype, COUNT, (16, 64)), "cuda")
    assert ran["cascade"] == ran["kv_cache"] == {"forward", "forward+backward"}


def by_hand(p: Problem, q: Tensor, k: Tensor, v: Tensor, *prefix: Tensor) -> Tensor:
    """The definition, over the prefix's keys and then the sequence's own; float64."""
    whole = (
        torch.cat([first.expand(p.batch, -1, -1, -1), own], 2)
        for first, own in zip(prefix, (k, v), strict=True)
    )
    return dense(replace(p, prefix=0), Inputs(q, *whole))


@pytest.mark.parametrize("changes", [{}, {"causal": False, "causal_align": ""}, {"d_v": 5}])
def test_the_references_have_the_output_and_all_gradients_of_the_formula(
    changes: dict[str, Any],
) -> None:
    p = replace(SMALL, **TRAINING, **changes)
    inputs = make_inputs(p, CPU, 0)
    tensors = [one.detach().double().requires_grad_() for one in leaves(inputs, None)]
    expected = by_hand(p, *tensors)
    gradient = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1)).double()
    wanted = torch.autograd.grad(expected, tensors, gradient)
    for one, near in ((reference, 1e-6), (same_dtype_reference, 1e-4)):
        found = one(p, inputs, None, torch.arange(p.seq_len))
        torch.testing.assert_close(found.double(), expected, rtol=near, atol=near)
        gradients = torch.autograd.grad(found, leaves(inputs, None), gradient.to(found))
        assert [g.shape for g in gradients] == [g.shape for g in wanted]
        for g, w in zip(gradients, wanted, strict=True):
            torch.testing.assert_close(g.double(), w, rtol=near, atol=near)


def test_bytes_count_a_prefix_once_and_flops_are_those_of_copies() -> None:
    tensors = make_inputs(SMALL, CPU, 0).named().values()
    assert input_bytes(SMALL) == sum(one.numel() * one.element_size() for one in tensors)
    outputs = 3 * 4 * 4 * 8 * 4
    assert minimal_bytes(SMALL) == input_bytes(SMALL) + outputs
    copies = replace(SMALL, prefix=0)
    token_bytes = 2 * (8 + 8) * 4
    for count in (input_bytes, minimal_bytes):
        assert count(copies) - count(SMALL) == 2 * 11 * token_bytes
    assert (work_flops(copies), work_exps(copies)) == (work_flops(SMALL), work_exps(SMALL))
    training = replace(SMALL, **TRAINING)
    once_more = input_bytes(SMALL) + outputs  # gradients of the inputs, and that of the output
    assert minimal_bytes(training) == minimal_bytes(SMALL) + once_more


@pytest.mark.filterwarnings("ignore")  # the profiler's warnings without a GPU
@pytest.mark.parametrize("count", first(1, [OFTEN, COUNT]))
@pytest.mark.parametrize("name", BACKENDS)
def test_the_peak_is_the_formulas_in_fp32_and_within_its_bound_in_half(
    name: str, count: int
) -> None:
    backend, found = load(name), Counter[str]()
    for fp32 in random_problems("fp32", count):
        for dtype in ("fp32", "bf16"):
            problem = replace(fp32, passes="forward", dtype=dtype)
            if not backend.why_not(problem, CPU):
                found[held(name, problem)] += 1
    assert found["exact"] >= count // 4
    assert found["bound"] >= count // 4 or name == "kv_cache:blocks"
    assert backend.peak_bytes(replace(SMALL, **TRAINING), CPU, 1) is None


def test_the_kernel_of_a_gpu_takes_and_returns_what_cascade_expects() -> None:
    for changes in ({}, {"seq_len": 1}, {"kv_seq_len": 15}, TRAINING):
        p = replace(SMALL, dtype="bf16", **changes)
        assert load("cascade").why_not(p, torch.device("cuda")) is None
        inputs = make_inputs(p, torch.device("meta"), 0)
        output = load("cascade").prepare(p, inputs, None)()
        assert (output.shape, output.dtype) == ((3, 4, p.seq_len, 8), torch.bfloat16)
        if p.backward:
            found = torch.autograd.grad(output, leaves(inputs, None), torch.empty_like(output))
            assert [one.shape for one in found] == [one.shape for one in leaves(inputs, None)]


def test_backends_refuse_in_a_line() -> None:
    cuda = torch.device("cuda")
    for name, problem, device, words in (
        ("sdpa", SMALL, CPU, "does not compute prefix 11; see cascade, kv_cache"),
        ("cascade", replace(SMALL, prefix=0), CPU, "needs prefix"),
        ("cascade", replace(SMALL, d_v=4), CPU, "keys are 8 and values 4 wide"),
        ("cascade", SMALL, cuda, "takes bf16 and fp16, and multiples of 8 up to 256"),
        ("kv_cache:blocks", replace(SMALL, **TRAINING), CPU, "set scope core and passes forward"),
    ):
        assert words in str(load(name).why_not(problem, device))
