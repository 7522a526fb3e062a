from dataclasses import replace

import torch

from attnbench.impls import Block, Decoder, Problem

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
