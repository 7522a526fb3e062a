"""Properties of weights, outputs and token order, on shapes and numbers drawn by hypothesis."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from attnbench.impls import Inputs, Problem, load, make_inputs, make_weights
from attnbench.impls.masks.counts import unmasked_pairs
from attnbench.impls.masks.tensors import mask_matrix
from attnbench.impls.problem import ALL_MASKS

CPU = torch.device("cpu")
EXACT = ("naive", "fused", "sdpa", "sdpa:math")
WITH_WEIGHTS = ("naive", "fused")
few = settings(max_examples=12, deadline=None, derandomize=True, database=None)


@st.composite
def problems(draw: Any, masks: tuple[str, ...] = ALL_MASKS) -> Problem:
    n_q, mask = draw(st.integers(1, 40)), draw(st.sampled_from(masks))
    causal = draw(st.booleans())
    shortest = -20 if mask in ("none", "padding", "random") else 0
    longer = draw(st.integers(shortest, 30)) if causal else 0
    kv_heads, group = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    return Problem(
        batch=draw(st.integers(1, 3)),
        seq_len=n_q,
        kv_seq_len=max(1, n_q + longer),
        d_model=16,
        heads=kv_heads * group,
        kv_heads=kv_heads,
        d_k=draw(st.integers(1, 9)),
        d_v=draw(st.integers(1, 9)),
        causal=causal,
        causal_align=draw(st.sampled_from(("top_left", "bottom_right"))) if causal else "",
        mask=mask,
    )


def drawn(problem: Problem, seed: int, size: float) -> Inputs:
    return Inputs(*(tensor * size for tensor in make_inputs(problem, CPU, seed)))


def seen(problem: Problem) -> Tensor:
    """[batch, 1, seq_len, kv_seq_len]"""
    matrix = mask_matrix(problem, torch.arange(problem.seq_len))
    shape = (problem.batch, problem.seq_len, problem.kv_seq_len)
    whole = torch.ones(shape, dtype=torch.bool) if matrix is None else matrix.expand(shape)
    return whole[:, None]


@pytest.mark.parametrize("name", WITH_WEIGHTS)
@few
@given(problem=problems(), seed=st.integers(0, 99), size=st.sampled_from((0.01, 1.0, 30.0)))
def test_rows_of_weights_sum_to_one_over_the_keys_that_are_seen(
    name: str, problem: Problem, seed: int, size: float
) -> None:
    inputs, backend = drawn(problem, seed, size), load(name)
    weights = backend.attention_weights(problem, inputs, None)
    mask = seen(problem)
    sums = torch.where(mask.any(-1), 1.0, 0.0)
    assert torch.allclose(weights.sum(-1), sums.expand(weights.shape[:-1]), atol=1e-5)
    assert not weights.masked_select(~mask.expand(weights.shape)).any()
    if size <= 1:  # weights are then too large to vanish in fp32
        assert int(weights.count_nonzero()) == problem.heads * unmasked_pairs(problem)
    values = inputs.value.repeat_interleave(problem.heads // problem.kv_heads, 1)
    output = backend.prepare(problem, inputs, None)()
    assert torch.allclose(weights @ values, output, atol=1e-5 * max(size, 1.0))


@pytest.mark.parametrize("name", EXACT)
@few
@given(problem=problems(), seed=st.integers(0, 99), size=st.sampled_from((0.01, 1.0, 30.0)))
def test_outputs_lie_between_the_values_that_are_seen(
    name: str, problem: Problem, seed: int, size: float
) -> None:
    inputs = drawn(problem, seed, size)
    output = load(name).prepare(problem, inputs, None)()
    values = inputs.value.repeat_interleave(problem.heads // problem.kv_heads, 1)
    values = values[:, :, None]  # [batch, heads, 1, key, d_v]
    mask = seen(problem)[..., None]
    low = values.masked_fill(~mask, torch.inf).amin(3)
    high = values.masked_fill(~mask, -torch.inf).amax(3)
    sees = seen(problem).any(-1, keepdim=True)
    margin = 1e-5 * size
    between = (output >= low - margin) & (output <= high + margin)
    assert bool(torch.where(sees, between, output == 0).all())


@pytest.mark.parametrize("name", EXACT)
@few
@given(problem=problems(masks=("none",)), seed=st.integers(0, 99))
def test_permuting_the_tokens_permutes_the_outputs(name: str, problem: Problem, seed: int) -> None:
    p = replace(problem, causal=False, causal_align="", kv_seq_len=problem.seq_len, scope="layer")
    (x, *_), weights = make_inputs(p, CPU, seed), make_weights(p, CPU, seed)
    order = torch.randperm(p.seq_len, generator=torch.Generator().manual_seed(seed))
    prepare = load(name).prepare
    straight, permuted = (prepare(p, Inputs(t, t, t), weights)() for t in (x, x[:, order]))
    assert torch.allclose(straight[:, order], permuted, atol=2e-5)
