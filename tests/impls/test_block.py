"""Blocks and decoders; generation: each step is the full causal pass, with and without a cache."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from attnbench.impls import Block, Decoder, Problem
from attnbench.impls.modules.block import empty_cache, extend, generate, step_flops

SHAPE = Problem(batch=1, seq_len=12, d_model=16, heads=4, causal=True)


def tokens(*shape: int, seed: int = 0, vocabulary: int = 11) -> torch.Tensor:
    return torch.randint(vocabulary, shape, generator=torch.Generator().manual_seed(seed))


def test_a_block_agrees_with_torchs_pre_norm_encoder_layer() -> None:
    block = Block(replace(SHAPE, causal=False, causal_align=""), seed=3)
    layer = torch.nn.TransformerEncoderLayer(
        16, 4, 64, dropout=0, activation="gelu", batch_first=True, norm_first=True
    ).eval()
    w = block.attention.weights()
    with torch.no_grad():
        layer.self_attn.in_proj_weight.copy_(torch.cat([w.w_q, w.w_k, w.w_v]))
        layer.self_attn.in_proj_bias.copy_(torch.cat([w.b_q, w.b_k, w.b_v]))
        for theirs, ours in (
            (layer.self_attn.out_proj.weight, w.w_o),
            (layer.self_attn.out_proj.bias, w.b_o),
            (layer.linear1.weight, block.up.weight),
            (layer.linear1.bias, block.up.bias),
            (layer.linear2.weight, block.down.weight),
            (layer.linear2.bias, block.down.bias),
        ):
            theirs.copy_(ours)
    x = torch.randn(2, 7, 16)
    assert torch.allclose(block(x)[0], layer(x), atol=1e-5)


def test_no_logit_of_a_causal_decoder_depends_on_later_tokens() -> None:
    decoder, first = Decoder(SHAPE, vocabulary=11, seed=1), tokens(1, 9)
    other = first.clone()
    other[0, 5:] = (other[0, 5:] + 1) % 11
    a, b = decoder(first)[0], decoder(other)[0]
    assert torch.equal(a[:, :5], b[:, :5])
    assert (a[:, 5:] != b[:, 5:]).any(-1).all()


def test_equal_seeds_give_equal_weights_and_neighbouring_seeds_share_none() -> None:
    a, b = (Decoder(SHAPE, vocabulary=11, seed=1).state_dict() for _ in range(2))
    other = Decoder(SHAPE, vocabulary=11, seed=2).state_dict()
    drawn = [name for name, tensor in a.items() if tensor.dim() == 2]
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert not any(
        torch.equal(a[one], other[two]) for one in drawn for two in drawn
        if a[one].shape == other[two].shape
    )  # fmt: skip


CACHED = Problem(batch=1, seq_len=24, d_model=16, heads=4, kv_heads=2, d_k=4, d_v=6, causal=True)
BACKENDS = ("naive", "fused", "sdpa", "sdpa:math")
PROMPT = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])


def decoder_of(backend: str = "fused", **changes: object) -> Decoder:
    decoder = Decoder(replace(CACHED, **changes), vocabulary=11, depth=2, backend=backend, seed=1)
    for parameter in decoder.parameters():
        torch.nn.init.normal_(parameter, std=0.4, generator=torch.Generator().manual_seed(2))
    return decoder


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_step_has_the_logits_of_the_full_causal_pass(backend: str, cached: bool) -> None:
    decoder = decoder_of(backend)
    tokens, logits = generate(decoder, PROMPT, 12, cached=cached)
    assert tokens.shape == (2, 17)
    whole = decoder(tokens)[0]
    assert torch.allclose(logits, whole[:, 4:-1], atol=1e-4)
    assert torch.equal(tokens[:, 5:], whole[:, 4:-1].argmax(-1))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_cache_can_be_extended_by_several_tokens(backend: str) -> None:
    decoder, tokens = decoder_of(backend), torch.arange(12).remainder(11)[None]
    cache = empty_cache(decoder, 1, 12)
    with torch.no_grad():
        parts = [extend(decoder, part, cache) for part in tokens.split([3, 1, 5, 3], 1)]
        whole = decoder(tokens)[0]
    assert torch.allclose(torch.cat(parts, 1), whole, atol=1e-4)
    assert cache.length == 12


def test_a_step_has_the_flops_that_torch_counts() -> None:
    decoder = decoder_of("naive", kv_heads=4)
    for n in (1, 7):
        tokens = torch.zeros(1, n, dtype=torch.int64)
        cache = empty_cache(decoder, 1, n)
        with torch.no_grad():
            if n > 1:
                extend(decoder, tokens[:, :-1], cache)
            step = partial(extend, decoder, tokens[:, -1:], cache)
            assert counted(step) == step_flops(decoder, n, cached=True)
            unmasked = 2 * 2 * (n * (n - 1) // 2) * 4 * (4 + 6)  # scores that a mask removes
            whole = counted(partial(decoder, tokens))
            assert whole == step_flops(decoder, n, cached=False) + unmasked


def counted(call: object) -> int:
    with FlopCounterMode(display=False) as counter:
        call()  # type: ignore[operator]
    return counter.get_total_flops()
