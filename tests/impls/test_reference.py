from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
import torch

from attnbench.impls import Inputs, Problem, load, make_inputs
from attnbench.impls import reference as reference_module
from attnbench.impls.masks.tensors import kept
from attnbench.impls.reference import reference, same_dtype_reference

# theory.md, "The worked example"
Q = [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 1]]
K = [[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 1, 1]]
V = [[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 1]]
WEIGHTS = [[0.274, 0.274, 0.452], [0.333, 0.333, 0.333], [0.274, 0.274, 0.452]]
OUTPUT = [[0.726, 0.726, 0.548, 0.726], [0.667, 0.667, 0.667, 0.667], [0.726, 0.726, 0.548, 0.726]]
EXAMPLE = Problem(batch=1, seq_len=3, d_model=4, heads=1)


def example() -> Inputs:
    return Inputs(*(torch.tensor(rows, dtype=torch.float32)[None, None] for rows in (Q, K, V)))


def test_worked_example_comes_out_as_printed() -> None:
    exact = reference(EXAMPLE, example(), None, torch.arange(3))[0, 0]
    assert exact.dtype == torch.float64
    assert torch.allclose(exact, torch.tensor(OUTPUT, dtype=torch.float64), atol=5e-4)
    assert torch.allclose(
        same_dtype_reference(EXAMPLE, example(), None, torch.arange(3))[0, 0].double(), exact, atol=1e-6
    )


@pytest.mark.parametrize("name", ["naive", "fused", "sdpa", "sdpa:math", "sdpa:flash"])
def test_worked_example_comes_out_of_every_cpu_backend(name: str) -> None:
    backend = load(name)
    with backend.context(EXAMPLE):
        output = backend.prepare(EXAMPLE, example(), None)()
    assert torch.allclose(output[0, 0], torch.tensor(OUTPUT), atol=5e-4)


@pytest.mark.parametrize("name", ["naive", "fused"])
def test_worked_example_has_the_printed_weights(name: str) -> None:
    assert torch.allclose(
        load(name).attention_weights(EXAMPLE, example(), None)[0, 0],
        torch.tensor(WEIGHTS),
        atol=5e-4,
    )


def dense(problem: Problem, inputs: Inputs) -> torch.Tensor:
    """Attention from its definition, row by row and key by key lists, nothing shared with the
    reference.
    """
    q, k, v = (tensor.double() for tensor in inputs)
    out = torch.zeros(
        problem.batch, problem.heads, problem.seq_len, problem.d_v, dtype=torch.float64
    )
    for head in range(problem.heads):
        shared = head // (problem.heads // problem.kv_heads)
        for i in range(problem.seq_len):
            seen = (
                problem.kv_seq_len
                if not problem.causal
                else min(problem.kv_seq_len, max(0, i + problem.causal_offset + 1))
            )
            scores = (q[:, head, i, None] * k[:, shared, :seen]).sum(-1) / problem.d_k**0.5
            weights = scores.exp() / scores.exp().sum(-1, keepdim=True)
            out[:, head, i] = (weights[..., None] * v[:, shared, :seen]).sum(1)
    return out


def test_reference_is_the_definition_under_masks(masked_shape: Problem) -> None:
    p = masked_shape
    q, k, v = (tensor.double() for tensor in make_inputs(p, torch.device("cpu"), 0))
    seen = kept(p, torch.arange(p.seq_len))
    assert seen is not None
    seen = seen.expand(p.batch, p.seq_len, p.kv_seq_len)
    out = torch.zeros(p.batch, p.heads, p.seq_len, p.d_v, dtype=torch.float64)
    for entry, head, i in product(range(p.batch), range(p.heads), range(p.seq_len)):
        shared, keys = head // (p.heads // p.kv_heads), seen[entry, i].nonzero()[:, 0]
        weights = ((q[entry, head, i] * k[entry, shared, keys]).sum(-1) / p.d_k**0.5).exp()
        out[entry, head, i] = (
            (weights[:, None] * v[entry, shared, keys]).sum(0) / weights.sum() if len(keys) else 0.0
        )
    rows = torch.arange(p.seq_len)
    assert torch.allclose(
        reference(p, make_inputs(p, torch.device("cpu"), 0), None, rows), out, atol=1e-12
    )
    plain = same_dtype_reference(p, Inputs(q, k, v), None, rows)
    assert torch.allclose(plain, out, atol=1e-12)


def test_reference_masks_the_entries_that_it_is_given() -> None:
    whole = Problem(batch=5, seq_len=20, d_model=8, heads=2, mask="padding")
    inputs, rows = make_inputs(whole, torch.device("cpu"), 0), torch.arange(20)
    some = [0, 2, 4]
    part, part_inputs = replace(whole, batch=3), Inputs(*(tensor[some] for tensor in inputs))
    for formula in (reference, same_dtype_reference):
        assert torch.allclose(
            formula(part, part_inputs, None, rows, some), formula(whole, inputs, None, rows)[some]
        )


def test_reference_is_the_definition(shape: Problem) -> None:
    inputs = make_inputs(shape, torch.device("cpu"), 0)
    assert torch.allclose(
        reference(shape, inputs, None, torch.arange(shape.seq_len)),
        dense(shape, inputs),
        atol=1e-12,
    )


def test_gradients_of_the_reference_are_those_of_the_definition(shape: Problem) -> None:
    def gradients(output: torch.Tensor, inputs: Inputs) -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(
            output,
            inputs,
            torch.linspace(-1, 1, output.numel(), dtype=torch.float64).view_as(output),
        )

    problem = replace(shape, passes="backward")
    inputs = Inputs(
        *(
            tensor.detach().double().requires_grad_()
            for tensor in make_inputs(problem, torch.device("cpu"), 0)
        )
    )
    ours = gradients(reference(problem, inputs, None, torch.arange(problem.seq_len)), inputs)
    assert all(
        torch.allclose(a, b, atol=1e-11)
        for a, b in zip(ours, gradients(dense(problem, inputs), inputs), strict=True)
    )


@pytest.mark.parametrize("function", [reference, same_dtype_reference])
def test_chosen_rows_are_those_of_the_whole(
    function: Callable, shape: Problem, make_case: Callable
) -> None:
    for scope in ("core", "layer"):
        case = make_case(shape, scope=scope)
        rows = torch.tensor(sorted({0, shape.seq_len // 2, shape.seq_len - 1}))
        whole = function(case.problem, case.inputs, case.weights, torch.arange(shape.seq_len))
        assert torch.allclose(
            function(case.problem, case.inputs, case.weights, rows), whole[..., rows, :], atol=1e-6
        )


def test_block_size_does_not_change_the_reference(
    make_case: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = make_case(Problem(batch=1, seq_len=30, d_model=16, heads=2, causal=True))
    whole = reference(case.problem, case.inputs, case.weights, case.rows)
    monkeypatch.setattr(reference_module, "BLOCK_SCORES", 7 * 30)
    assert torch.allclose(
        reference(case.problem, case.inputs, case.weights, case.rows), whole, atol=1e-14
    )
