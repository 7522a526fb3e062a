from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor

from attnbench.impls import Inputs, Problem, make_inputs
from attnbench.impls import reference as reference_module
from attnbench.impls.backend import leaves
from attnbench.impls.reference import reference, same_dtype_reference
from attnbench.impls.shared.mask_tensors import mask_matrix
from tests.impls.conftest import MASKED, PROBLEMS, SCORED, copies, exact_copies

# docs/internals/theory.md, The layer
Q = [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 1]]
K = [[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 1, 1]]
V = [[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 1]]
OUTPUT = [[0.726, 0.726, 0.548, 0.726], [0.667, 0.667, 0.667, 0.667], [0.726, 0.726, 0.548, 0.726]]
EXAMPLE = Problem(batch=1, seq_len=3, d_model=4, heads=1)


def example() -> Inputs:
    return Inputs(*(torch.tensor(rows, dtype=torch.float32)[None, None] for rows in (Q, K, V)))


def test_worked_example_comes_out_as_printed() -> None:
    exact = reference(EXAMPLE, example(), None, torch.arange(3))[0, 0]
    assert exact.dtype == torch.float64
    assert torch.allclose(exact, torch.tensor(OUTPUT, dtype=torch.float64), atol=5e-4)
    same = same_dtype_reference(EXAMPLE, example(), None, torch.arange(3))[0, 0]
    assert torch.allclose(same.double(), exact, atol=1e-6)


def dense(problem: Problem, inputs: Inputs) -> torch.Tensor:
    """Attention from its definition, query by query, in float64; takes the matrix of a
    mask, as backends do, where the reference asks its rule.
    """
    p = problem
    q, k, v = (tensor.double() for tensor in inputs)
    mask = mask_matrix(p, torch.arange(p.seq_len))
    seen = torch.ones((), dtype=torch.bool) if mask is None else mask
    seen = seen.expand(p.batch, p.seq_len, p.kv_seq_len)
    out = torch.zeros(p.batch, p.heads, p.seq_len, p.d_v, dtype=torch.float64)
    for entry, head, i in product(range(p.batch), range(p.heads), range(p.seq_len)):
        shared, keys = head // (p.heads // p.kv_heads), seen[entry, i].nonzero()[:, 0]
        scores = (q[entry, head, i] * k[entry, shared, keys]).sum(-1) / p.d_k**0.5
        if p.softcap:
            scores = p.softcap * (scores / p.softcap).tanh()
        weights = scores.exp()
        total = weights.sum() + (inputs.more["sinks"][head].double().exp() if p.sinks else 0)
        if len(keys):
            out[entry, head, i] = (weights[:, None] * v[entry, shared, keys]).sum(0) / total
    return out


@pytest.mark.parametrize("name", [*PROBLEMS, *MASKED, *SCORED])
def test_reference_is_the_definition(name: str) -> None:
    p = (PROBLEMS | MASKED | SCORED)[name]
    inputs, rows = make_inputs(p, torch.device("cpu"), 0), torch.arange(p.seq_len)
    assert torch.allclose(reference(p, inputs, None, rows), dense(p, inputs), atol=1e-12)
    same = same_dtype_reference(p, copies(inputs, None, Tensor.double)[0], None, rows)
    assert torch.allclose(same, dense(p, inputs), atol=1e-12)


@pytest.mark.parametrize("name", [*PROBLEMS, *SCORED])
def test_gradients_of_the_reference_are_those_of_the_definition(name: str) -> None:
    def gradients(output: Tensor, inputs: Inputs) -> tuple[Tensor, ...]:
        gradient = torch.linspace(-1, 1, output.numel(), dtype=torch.float64).view_as(output)
        return torch.autograd.grad(output, leaves(inputs, None), gradient)

    problem = replace((PROBLEMS | SCORED)[name], passes="backward")
    inputs, _ = exact_copies(make_inputs(problem, torch.device("cpu"), 0), None)
    ours = gradients(reference(problem, inputs, None, torch.arange(problem.seq_len)), inputs)
    expected = gradients(dense(problem, inputs), inputs)
    assert all(torch.allclose(a, b, atol=1e-11) for a, b in zip(ours, expected, strict=True))


@pytest.mark.parametrize("function", [reference, same_dtype_reference])
def test_chosen_rows_are_those_of_the_whole(
    function: Callable, shape: Problem, make_case: Callable
) -> None:
    for scope in ("core", "layer"):
        case = make_case(shape, scope=scope)
        rows = torch.tensor(sorted({0, shape.seq_len // 2, shape.seq_len - 1}))
        whole = function(case.problem, case.inputs, case.weights, torch.arange(shape.seq_len))
        part = function(case.problem, case.inputs, case.weights, rows)
        assert torch.allclose(part, whole[..., rows, :], atol=1e-6)


def test_block_size_does_not_change_the_reference(
    make_case: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = make_case(Problem(batch=1, seq_len=30, d_model=16, heads=2, causal=True))
    whole = reference(case.problem, case.inputs, case.weights, case.rows)
    monkeypatch.setattr(reference_module, "BLOCK_SCORES", 7 * 30)
    in_blocks = reference(case.problem, case.inputs, case.weights, case.rows)
    assert torch.allclose(in_blocks, whole, atol=1e-14)
