from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from attnbench.impls import MultiHeadAttention, Problem, load, make_inputs, make_weights
from attnbench.impls.masks.counts import unmasked_pairs

CPU = torch.device("cpu")
SHAPE = Problem(batch=2, seq_len=12, d_model=24, heads=3, kv_heads=3, d_k=6, d_v=10, scope="layer")


def test_weights_are_equal_for_equal_seeds_and_within_xaviers_bound() -> None:
    one, same, other = (make_weights(SHAPE, CPU, seed) for seed in (5, 5, 6))
    assert all(torch.equal(a, b) for a, b in zip(one.tensors(), same.tensors(), strict=True))
    assert not torch.equal(one.w_q, other.w_q)
    assert one.w_o.shape == (24, 30)
    bound = (6 / (24 + 18)) ** 0.5
    assert 0.9 * bound < float(one.w_q.abs().max()) <= bound
    assert not one.b_q.any()


@pytest.mark.parametrize("name", ["naive", "sdpa", "sdpa:math"])
def test_one_projection_for_all_heads_gives_what_one_per_head_gives(
    name: str, shape: Problem, make_case: Callable
) -> None:
    case = make_case(shape, scope="layer")
    for ours, fused in zip(case.backend(name), case.backend("fused"), strict=True):
        assert torch.allclose(ours, fused, rtol=1e-4, atol=2e-5)


def test_head_i_owns_its_contiguous_block_of_columns() -> None:
    """With all but head 1's rows of W_V cleared, only its block of the merged heads, and so of
    W_O's columns, matters.
    """
    weights = make_weights(SHAPE, CPU, 0)
    inputs = make_inputs(SHAPE, CPU, 0)
    head = slice(SHAPE.d_v, 2 * SHAPE.d_v)
    w_v, w_o = torch.zeros_like(weights.w_v), torch.zeros_like(weights.w_o)
    w_v[head], w_o[:, head] = weights.w_v[head], weights.w_o[:, head]
    for name in ("naive", "fused", "sdpa"):
        backend = load(name)
        by_values = backend.prepare(SHAPE, inputs, replace(weights, w_v=w_v))()
        assert torch.allclose(
            by_values, backend.prepare(SHAPE, inputs, replace(weights, w_o=w_o))(), atol=1e-6
        )
        assert by_values.any()


def test_layer_gives_the_same_whatever_backend_serves_it() -> None:
    layer = MultiHeadAttention(SHAPE, seed=1)
    x, source = torch.randn(2, 7, 24), torch.randn(2, 9, 24)  # other sizes than the problem's
    expected, none = layer(x, source, source)
    assert none is None
    for name in ("naive", "sdpa", "sdpa:math"):
        layer.backend = name
        assert layer.backend == name
        assert torch.allclose(layer(x, source, source)[0], expected, atol=1e-5)


def test_layer_trains() -> None:
    layer = MultiHeadAttention(SHAPE, backend="naive")
    x = torch.randn(1, 5, 24)
    layer(x, x, x)[0].square().sum().backward()
    assert len(list(layer.parameters())) == 8
    assert all(parameter.grad is not None for parameter in layer.parameters())


@pytest.mark.parametrize("name", ["naive", "fused"])
def test_weights_of_each_query_sum_to_one_and_give_the_output(name: str, shape: Problem) -> None:
    inputs = make_inputs(shape, CPU, 0)
    backend = load(name)
    weights = backend.attention_weights(shape, inputs, None)
    assert weights.shape == (shape.batch, shape.heads, shape.seq_len, shape.kv_seq_len)
    assert torch.allclose(weights.sum(-1)[:, :, shape.empty_rows :], torch.ones(()), atol=1e-5)
    assert int(weights.count_nonzero()) == shape.heads * unmasked_pairs(shape)
    values = inputs.value.repeat_interleave(shape.heads // shape.kv_heads, dim=1)
    assert torch.allclose(weights @ values, backend.prepare(shape, inputs, None)(), atol=1e-5)


@pytest.mark.parametrize("name", ["naive", "fused"])
def test_layer_returns_weights_when_asked(name: str) -> None:
    layer = MultiHeadAttention(SHAPE, backend=name)
    x = torch.randn(2, 7, 24)
    assert layer(x, x, x, need_weights=True)[1].shape == (2, 3, 7, 7)


def test_layer_refuses_weights_that_the_backend_does_not_have() -> None:
    x = torch.randn(1, 4, 24)
    with pytest.raises(
        ValueError, match=r"^sdpa:flash cannot return attention weights; these can: fused, naive$"
    ):
        MultiHeadAttention(replace(SHAPE, d_v=6), backend="sdpa:flash")(x, x, x, need_weights=True)


def test_layer_refuses_what_its_backend_cannot_compute() -> None:
    x = torch.randn(1, 4, 24)
    with pytest.raises(
        ValueError, match=r"sdpa:flash: torch refuses the flash kernel: .*same last dimension"
    ):
        MultiHeadAttention(SHAPE, backend="sdpa:flash")(x, x, x)


def test_causal_layer_refuses_other_lengths_until_told_the_alignment() -> None:
    x, source = torch.randn(1, 4, 24), torch.randn(1, 6, 24)
    with pytest.raises(ValueError, match="has two readings"):
        MultiHeadAttention(replace(SHAPE, causal=True))(x, source, source)
    told = replace(SHAPE, causal=True, kv_seq_len=20, causal_align="bottom_right")
    assert MultiHeadAttention(told)(x, source, source)[0].shape == (1, 4, 24)
