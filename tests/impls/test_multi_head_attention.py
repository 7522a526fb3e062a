from dataclasses import replace

import pytest
import torch

from attnbench.impls import MultiHeadAttention, Problem

SHAPE = Problem(batch=2, seq_len=12, d_model=24, heads=3, kv_heads=3, d_k=6, d_v=10, scope="layer")


def test_a_layer_with_sinks_is_refused_in_a_line() -> None:
    with pytest.raises(ValueError, match=r"^this module has no sinks; give a problem with sinks="):
        MultiHeadAttention(replace(SHAPE, sinks=True))


def test_a_causal_layer_needs_the_alignment_for_other_lengths() -> None:
    x, source = torch.randn(1, 4, 24), torch.randn(1, 6, 24)
    with pytest.raises(ValueError, match="is ambiguous"):
        MultiHeadAttention(replace(SHAPE, causal=True))(x, source, source)
    aligned = replace(SHAPE, causal=True, kv_seq_len=20, causal_align="bottom_right")
    assert MultiHeadAttention(aligned)(x, source, source)[0].shape == (1, 4, 24)
