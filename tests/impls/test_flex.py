from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask

from attnbench.impls import Problem
from attnbench.impls.shared.flex_attention import block_mask
from attnbench.impls.shared.mask_tensors import mask_matrix

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
PARTS = tuple(
    f"{full}{side}_{what}"
    for full in ("", "full_")
    for side in ("kv", "q")
    for what in ("num_blocks", "indices")
)
LENGTHS = [
    (300, 300, ""),
    (256, 256, ""),
    (129, 128, "top_left"),
    (200, 500, "top_left"),
    (500, 200, "top_left"),
    (200, 500, "bottom_right"),
    (384, 640, "bottom_right"),
    (500, 200, "bottom_right"),
]


def causal(seq_len: int, kv_seq_len: int, align: str) -> Problem:
    shape = {"batch": 1, "seq_len": seq_len, "kv_seq_len": kv_seq_len, "d_model": 16, "heads": 1}
    return Problem(**shape, causal=True, causal_align=align)


@pytest.mark.parametrize(("seq_len", "kv_seq_len", "align"), LENGTHS)
def test_the_block_mask_is_the_one_that_torch_computes_from_all_pairs(
    seq_len: int, kv_seq_len: int, align: str
) -> None:
    problem = causal(seq_len, kv_seq_len, align)
    offset, n_q = max(problem.causal_offset, 0), seq_len - problem.empty_rows
    ours = block_mask(problem, CPU)
    theirs = create_block_mask(
        lambda b, h, q, kv: kv <= q + offset, None, None, n_q, kv_seq_len, device="cpu"
    )
    assert (ours.seq_lengths, ours.BLOCK_SIZE) == (theirs.seq_lengths, theirs.BLOCK_SIZE)
    for part in PARTS:
        assert torch.equal(getattr(ours, part), getattr(theirs, part)), part


@pytest.mark.parametrize("mask", ["local", "chunked"])
@pytest.mark.parametrize("window", [1, 100, 127, 128, 300, 1000])
@pytest.mark.parametrize(
    ("seq_len", "more", "is_causal"), [(500, 0, False), (500, 0, True), (384, 257, True)]
)
def test_a_window_and_chunks_leave_out_blocks_on_both_sides(
    seq_len: int, more: int, is_causal: bool, window: int, mask: str
) -> None:
    align = "bottom_right" if more else ""
    whole = causal(seq_len, seq_len + more, align)
    problem = replace(whole, causal=is_causal, causal_align=align, mask=mask, window=window)

    def seen(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        own = q + more
        within = own // window == kv // window if mask == "chunked" else (own - kv).abs() <= window
        return within & (kv <= own) if is_causal else within

    ours = block_mask(problem, CPU)
    if window == 1000 and not is_causal:
        assert ours is None
        return
    theirs = create_block_mask(seen, None, None, seq_len, seq_len + more, device="cpu")
    for part in PARTS:
        assert torch.equal(getattr(ours, part), getattr(theirs, part)), part


@pytest.mark.parametrize("mask", ["none", "local", "chunked"])
@pytest.mark.parametrize("seq_len", [1, 2, 3, 130])
def test_each_pair_is_that_of_the_rule_and_there_is_no_mask_only_where_all_are_seen(
    seq_len: int, mask: str
) -> None:
    """As of two queries after a cache, of which the first must not see the second's key."""
    window = 0 if mask == "none" else 64
    for more in (1, 2, 63, 64, 127, 128):
        cached = causal(seq_len, seq_len + more, "bottom_right")
        problem = replace(cached, mask=mask, window=window)
        queries, keys = torch.arange(seq_len), torch.arange(seq_len + more)
        seen = mask_matrix(problem, queries)[0]
        ours = block_mask(problem, CPU)
        if ours is None:
            assert seen.all()
        else:
            zero = torch.tensor(0)
            assert torch.equal(ours.mask_mod(zero, zero, queries[:, None], keys), seen)
            assert not seen.all()


@pytest.mark.long
def test_a_long_mask_is_made_without_a_tensor_of_all_pairs() -> None:
    mask = block_mask(causal(1 << 18, 1 << 18, ""), CPU)  # all pairs would be 64 GiB
    assert mask.kv_num_blocks.numel() == 2048
    assert int(mask.full_kv_num_blocks.sum()) == 2048 * 2047 // 2
