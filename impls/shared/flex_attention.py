"""torch's flex_attention: its block masks."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask

from ..axes.lengths import starts
from ..masks import MASKS
from ..problem import Problem

BLOCK = 128  # flex_attention's default


def document_mask(problem: Problem, device: torch.device) -> BlockMask:
    """Of packed sequences, as torch's documentation builds it: from all n_q * n_kv pairs."""
    p, positions = problem, torch.arange(problem.seq_len, device=device)
    of_queries, of_keys = (torch.tensor(one, device=device) for one in starts(p.lengths))
    sequence = torch.searchsorted(of_queries, positions, right=True) - 1
    first, end = of_keys[sequence], of_keys[sequence + 1]
    own = end - of_queries[sequence + 1] + positions
    last = own if p.causal else end - 1
    if found := band_of(p, own):
        first, last = first.maximum(found[0]), last.minimum(found[1])

    def mask_mod(_b: Tensor, _h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        return (kv >= first[q]) & (kv <= last[q])

    return create_block_mask(mask_mod, None, None, p.seq_len, p.kv_seq_len, device=device)


def block_mask(problem: Problem, device: torch.device) -> BlockMask | None:
    """The result of create_block_mask for the causal mask and those with a band, without all n_q *
    n_kv pairs.

    None if every query sees every key. Queries that see none are left out (layer.as_call).
    """
    p, offset = problem, max(problem.causal_offset, 0)
    n_q, n_kv = p.seq_len - p.empty_rows, p.kv_seq_len

    # The first and the last key that query q sees; neither falls from one query to the next.
    def band(q: Any) -> tuple[Any, Any]:
        own = q + offset
        lowest, highest = band_of(p, own) or (own - n_q - n_kv, own + n_q + n_kv)
        return lowest, own if p.causal else highest

    if p.mask == "none" and not p.causal:
        return None
    if band(0)[1] >= n_kv - 1 and band(n_q - 1)[0] <= 0:
        return None
    first = torch.arange(0, n_q, BLOCK, device=device)[:, None]  # query of each block
    last = (first + BLOCK - 1).clamp(max=n_q - 1)
    keys = torch.arange(0, n_kv, BLOCK, device=device)
    # A block needs no mask if its first query sees its last key, its last query its first key, and
    # it does not exceed n_q or n_kv.
    (first_low, first_high), (last_low, last_high) = band(first), band(last)
    full = (keys + BLOCK - 1 <= first_high.clamp(max=n_kv - 1)) & (first + BLOCK <= n_q)
    full &= keys >= last_low
    seen = (keys <= last_high) & (keys + BLOCK - 1 >= first_low)

    def mask_mod(_b: Tensor, _h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        lowest, highest = band(q)
        within: Tensor = kv <= highest
        return within if p.mask == "none" else within & (kv >= lowest)

    return BlockMask.from_kv_blocks(
        *_counts_and_indices(seen & ~full),
        *_counts_and_indices(full),
        BLOCK_SIZE=BLOCK,
        mask_mod=mask_mod,
        seq_lengths=(n_q, n_kv),
    )


def band_of(problem: Problem, own: Any) -> tuple[Any, Any] | None:
    """The first and the last key that the mask leaves to the position `own`; None without one."""
    band = MASKS[problem.mask].band if problem.mask != "none" else None
    return band(problem, own) if band else None


def _counts_and_indices(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """For each row of blocks: their number [1, 1, rows], and all columns, theirs first [1, 1, rows,
    columns].
    """
    order = blocks.int().argsort(dim=-1, descending=True, stable=True)
    return blocks.sum(-1, dtype=torch.int32)[None, None], order.int()[None, None]
