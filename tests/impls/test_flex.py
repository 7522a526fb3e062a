from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask

from attnbench.impls import Problem
from attnbench.impls.shared.flex_attention import block_mask
from attnbench.impls.shared.mask_tensors import computed_rows, mask_matrix

CPU = torch.device("cpu")
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
    (384, 640, "bottom_right"),
    (500, 200, "bottom_right"),
    # as after a cache: the first of two queries must not see the second's key
    *((n_q, n_q + more, "bottom_right") for n_q in (1, 2, 130) for more in (1, 63, 64, 127, 300)),
]
WINDOWS = (1, 64, 127, 128, 1000)


def causal(seq_len: int, kv_seq_len: int, align: str) -> Problem:
    shape = {"batch": 1, "seq_len": seq_len, "kv_seq_len": kv_seq_len, "d_model": 16, "heads": 1}
    return Problem(**shape, causal=True, causal_align=align)


def problems(mask: str) -> list[Problem]:
    triangles = [causal(*lengths) for lengths in LENGTHS]
    if mask == "none":
        return triangles
    placed = [one for one in triangles if one.seq_len <= one.kv_seq_len]
    placed.append(replace(causal(500, 500, ""), causal=False, causal_align=""))
    return [replace(one, mask=mask, window=window) for one in placed for window in WINDOWS]


@pytest.mark.parametrize("mask", ["none", "local", "chunked"])
def test_the_block_mask_is_the_one_that_torch_computes_from_all_pairs(mask: str) -> None:
    """There is none only where every query sees every key."""
    for problem in problems(mask):
        seen = mask_matrix(problem, computed_rows(problem, CPU))[0]

        def pair(b: Tensor, h: Tensor, q: Tensor, kv: Tensor, seen: Tensor = seen) -> Tensor:
            return seen[q, kv]

        ours = block_mask(problem, CPU)
        if ours is None:
            assert seen.all(), problem
            continue
        assert not seen.all(), problem
        theirs = create_block_mask(pair, None, None, *seen.shape, device="cpu")
        assert (ours.seq_lengths, ours.BLOCK_SIZE) == (theirs.seq_lengths, theirs.BLOCK_SIZE)
        for part in PARTS:
            assert torch.equal(getattr(ours, part), getattr(theirs, part)), (problem, part)
        (n_q, n_kv), zero = seen.shape, torch.tensor(0)
        pairs = ours.mask_mod(zero, zero, torch.arange(n_q)[:, None], torch.arange(n_kv))
        assert torch.equal(pairs, seen), problem


@pytest.mark.long
def test_a_long_mask_is_made_without_a_tensor_of_all_pairs() -> None:
    mask = block_mask(causal(1 << 18, 1 << 18, ""), CPU)  # all pairs would be 64 GiB
    assert mask.kv_num_blocks.numel() == 2048
    assert int(mask.full_kv_num_blocks.sum()) == 2048 * 2047 // 2
