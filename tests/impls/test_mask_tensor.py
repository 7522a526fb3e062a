"""MultiHeadAttention.forward(mask=): the usual conventions, exact in every backend."""

from dataclasses import replace
from itertools import product
from math import inf

import pytest
import torch
from torch import Tensor
from torch.nn.functional import linear

from attnbench.impls import MultiHeadAttention, Problem, load
from attnbench.impls.backend import Inputs
from attnbench.impls.layer import split_heads
from attnbench.impls.shared.mask_tensors import given_mask

SHAPE = Problem(batch=2, seq_len=7, kv_seq_len=9, d_model=24, heads=4, kv_heads=2, d_k=6, d_v=10)
TAKE_MASKS = ("naive", "fused", "sdpa", "sdpa:math")
SIZES = ((7, 9), (1, 9), (2, 4, 7, 9), (2, 1, 1, 9), (1, 4, 7, 1), (1, 1, 7, 9))


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def layer_of(problem: Problem = SHAPE, backend: str = "fused") -> MultiHeadAttention:
    return MultiHeadAttention(problem, backend=backend, seed=1)


def by_definition(layer: MultiHeadAttention, x: Tensor, source: Tensor, bias: Tensor) -> Tensor:
    """In float64 from `bias` [2, 4, 7, 9]; a query without keys gives zeros."""
    p, w = replace(layer.problem, scope="layer"), layer.weights()
    q, k, v = (tensor.double() for tensor in split_heads(p, Inputs(x, source, source), w))
    k, v = (x.repeat_interleave(p.heads // p.kv_heads, 1) for x in (k, v))
    weights = (q @ k.mT / p.d_k**0.5 + bias.double()).softmax(-1)  # NaN without keys
    out = (weights.nan_to_num(0.0) @ v).transpose(1, 2)
    return linear(out.flatten(2), w.w_o.double(), w.b_o.double())


@pytest.mark.parametrize(
    ("kind", "size", "backend"),
    [
        *product(("boolean", "additive"), SIZES, TAKE_MASKS),
        pytest.param("additive", (2, 4, 7, 9), "compiled", marks=pytest.mark.long),
    ],
)
def test_a_mask_gives_what_its_definition_gives(
    kind: str, size: tuple[int, ...], backend: str
) -> None:
    layer, x, source = layer_of(backend=backend), drawn(2, 7, 24), drawn(2, 9, 24, seed=1)
    values = drawn(*size, seed=2)
    mask = values > 0 if kind == "boolean" else values
    bias = torch.where(mask, 0.0, -inf) if kind == "boolean" else mask
    expected = by_definition(layer, x, source, bias.expand(2, 4, 7, 9))
    with torch.no_grad():
        found, none = layer(x, source, source, mask=mask)
    assert none is None
    assert torch.allclose(found.double(), expected, atol=1e-5)


@pytest.mark.parametrize("backend", TAKE_MASKS)
def test_fills_of_minus_1e9_and_minus_infinity_are_equal_where_a_query_sees_a_key(
    backend: str,
) -> None:
    layer, x = layer_of(replace(SHAPE, kv_seq_len=7), backend), drawn(2, 7, 24)
    seen = torch.ones(7, 7, dtype=torch.bool).tril()
    boolean = layer(x, x, x, mask=seen)[0]
    for fill in (-1e9, -inf, torch.finfo(torch.float32).min):
        filled = torch.zeros(7, 7).masked_fill(~seen, fill)
        assert torch.allclose(layer(x, x, x, mask=filled)[0], boolean, atol=1e-6)


@pytest.mark.parametrize("fill", [-1e9, torch.finfo(torch.float32).min])
@pytest.mark.parametrize("backend", ["naive", "fused"])
def test_a_query_of_fills_alone_is_uniform_and_one_without_keys_is_zero(
    backend: str, fill: float
) -> None:
    layer, x = layer_of(replace(SHAPE, kv_seq_len=7), backend), drawn(2, 7, 24)
    p = layer(x, x, x, need_weights=True, mask=torch.full((1, 7), fill))[1]
    assert torch.allclose(p, torch.full_like(p, 1 / 7))
    for nothing in (torch.full((7, 7), -inf), torch.zeros(7, 7, dtype=torch.bool)):
        output, p = layer(x, x, x, need_weights=True, mask=nothing)
        assert torch.equal(p, torch.zeros_like(p))
        assert torch.equal(output, layer.b_o.expand(2, 7, 24))


@pytest.mark.parametrize("backend", TAKE_MASKS)
@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_fills_that_half_precision_cannot_hold_give_no_nan(dtype: str, backend: str) -> None:
    problem = replace(SHAPE, kv_seq_len=7, dtype=dtype)
    layer = layer_of(problem, backend)
    x = drawn(2, 7, 24).to(layer.w_q.dtype)
    seen = torch.ones(7, 7, dtype=torch.bool).tril(-1)  # the first query has fills alone
    output = layer(x, x, x, mask=torch.zeros(7, 7).masked_fill(~seen, -1e9))[0]
    expected = layer(x, x, x, mask=seen)[0]
    assert output.isfinite().all()
    assert torch.allclose(output[:, 1:].float(), expected[:, 1:].float(), atol=2e-2)


@pytest.mark.parametrize("backend", TAKE_MASKS)
@pytest.mark.parametrize("fill", [-1e9, -65504.0])
def test_a_query_of_fills_alone_is_uniform_in_fp16_below_any_score(
    fill: float, backend: str
) -> None:
    """Scores of -157 each: the lowest number of fp16 and such a score overflow to -inf."""
    problem, half = replace(SHAPE, dtype="fp16"), torch.float16
    q, k = torch.full((2, 4, 7, 6), 8.0, dtype=half), torch.full((2, 2, 9, 6), -8.0, dtype=half)
    v = drawn(2, 2, 9, 10).half()
    mask, empty = given_mask(torch.full((7, 9), fill), problem, half)
    assert not empty.any()
    found = load(backend).under_mask(problem, q, k, v, mask)
    mean = v.float().mean(2, keepdim=True).repeat_interleave(2, 1).expand(2, 4, 7, 10)
    assert torch.allclose(found.float(), mean, atol=2e-3)


@pytest.mark.parametrize("backend", TAKE_MASKS)
def test_a_mask_adds_to_that_of_the_problem(backend: str) -> None:
    x, far = drawn(2, 7, 24), torch.ones(7, 7, dtype=torch.bool).triu(-2)
    both = layer_of(replace(SHAPE, kv_seq_len=7, causal=True), backend)(x, x, x, mask=far)[0]
    one = layer_of(replace(SHAPE, kv_seq_len=7), backend)(x, x, x, mask=far.tril())[0]
    assert torch.allclose(both, one, atol=1e-5)
    local = layer_of(replace(SHAPE, kv_seq_len=7, mask="local", window=2), backend)
    triangle = torch.ones(7, 7, dtype=torch.bool).tril()
    assert torch.allclose(local(x, x, x, mask=triangle)[0], one, atol=1e-5)


@pytest.mark.parametrize("backend", ["naive", "fused", "sdpa:math"])
def test_gradients_reach_inputs_weights_and_a_learnt_bias_but_no_masked_key(backend: str) -> None:
    layer, x = layer_of(replace(SHAPE, kv_seq_len=7), backend), drawn(2, 7, 24).requires_grad_()
    source = drawn(2, 7, 24, seed=1).requires_grad_()
    bias = drawn(1, 4, 7, 7, seed=2).masked_fill(torch.arange(7) == 3, -inf).requires_grad_()
    layer(x, source, source, mask=bias)[0].square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())
    assert (source.grad[:, 3] == 0).all()
    assert (source.grad[:, 4] != 0).any()
    assert (bias.grad[..., 3] == 0).all()
    assert (bias.grad[..., 4] != 0).any()


def test_no_gradient_is_nan_where_a_query_sees_no_key() -> None:
    for backend in TAKE_MASKS[:3]:
        layer, x = layer_of(replace(SHAPE, kv_seq_len=7), backend), drawn(2, 7, 24).requires_grad_()
        seen = torch.ones(7, 7, dtype=torch.bool).tril(-1)
        layer(x, x, x, mask=seen)[0].square().sum().backward()
        assert x.grad.isfinite().all()


@pytest.mark.parametrize("backend", ["torch_mha", "sparse_local", "linformer"])
def test_a_backend_that_takes_no_mask_says_which_do(backend: str) -> None:
    x = drawn(2, 7, 24)
    layer = layer_of(Problem(batch=2, seq_len=7, d_model=24, heads=4), backend)
    with pytest.raises(
        ValueError,
        match=rf"^{backend}: takes no mask tensor; these do: compiled, fused, naive, sdpa$",
    ):
        layer(x, x, x, mask=torch.ones(7, 7, dtype=torch.bool))
