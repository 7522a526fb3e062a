from dataclasses import replace

import pytest
import torch

from attnbench.impls import MultiHeadAttention, Problem

SHAPE = Problem(batch=2, seq_len=12, d_model=24, heads=3, kv_heads=3, d_k=6, d_v=10, scope="layer")


def test_output_is_the_same_with_every_backend() -> None:
    layer = MultiHeadAttention(SHAPE, seed=1)
    x, source = torch.randn(2, 7, 24), torch.randn(2, 9, 24)  # other sizes than the problem's
    expected, none = layer(x, source, source)
    assert none is None
    for name in ("naive", "sdpa", "sdpa:math"):
        layer.backend = name
        assert layer.backend == name
        assert torch.allclose(layer(x, source, source)[0], expected, atol=1e-5)


def test_it_trains() -> None:
    layer = MultiHeadAttention(SHAPE, backend="naive")
    x = torch.randn(1, 5, 24)
    layer(x, x, x)[0].square().sum().backward()
    assert len(list(layer.parameters())) == 8
    assert all(parameter.grad is not None for parameter in layer.parameters())


@pytest.mark.parametrize("name", ["naive", "fused"])
def test_it_returns_weights_on_request(name: str) -> None:
    layer = MultiHeadAttention(SHAPE, backend=name)
    x = torch.randn(2, 7, 24)
    assert layer(x, x, x, need_weights=True)[1].shape == (2, 3, 7, 7)


def test_a_layer_with_sinks_is_refused_in_a_line() -> None:
    with pytest.raises(ValueError, match=r"^this module has no sinks; give a problem with sinks="):
        MultiHeadAttention(replace(SHAPE, sinks=True))


def test_a_causal_layer_needs_the_alignment_for_other_lengths() -> None:
    x, source = torch.randn(1, 4, 24), torch.randn(1, 6, 24)
    with pytest.raises(ValueError, match="is ambiguous"):
        MultiHeadAttention(replace(SHAPE, causal=True))(x, source, source)
    aligned = replace(SHAPE, causal=True, kv_seq_len=20, causal_align="bottom_right")
    assert MultiHeadAttention(aligned)(x, source, source)[0].shape == (1, 4, 24)
