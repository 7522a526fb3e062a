"""torch's flex_attention: what it needs and takes, and its block masks."""

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask

from ._inductor import missing_for_compile
from .lengths import starts
from .problem import Problem

NARROWEST = 16  # columns that Triton's matrix product needs
BLOCK = 128  # flex_attention's default


def unavailable(device: torch.device) -> str | None:
    reason = missing_for_compile(device)
    if reason is None and device.type == "cpu" and not torch.cpu._is_avx2_supported():
        return "flex_attention on a CPU needs AVX2"
    return reason


def why_not(problem: Problem, device: torch.device) -> str | None:
    if device.type == "cpu":
        return "flex_attention has no backward pass on a CPU" if problem.backward else None
    width = min(problem.d_k, problem.d_v)
    if width < NARROWEST:
        return f"heads are {width} wide; flex_attention on a GPU needs {NARROWEST} or more"
    return None


def build_mask(problem: Problem, device: torch.device) -> BlockMask | None:
    return document_mask(problem, device) if problem.lengths else block_mask(problem, device)


def document_mask(problem: Problem, device: torch.device) -> BlockMask:
    """Of packed sequences, as torch's documentation builds it: from all n_q * n_kv pairs."""
    p, positions = problem, torch.arange(problem.seq_len, device=device)
    of_queries, of_keys = (torch.tensor(one, device=device) for one in starts(p.lengths))
    sequence = torch.searchsorted(of_queries, positions, right=True) - 1
    first, end = of_keys[sequence], of_keys[sequence + 1]
    own = end - of_queries[sequence + 1] + positions
    last = own if p.causal else end - 1
    if p.mask == "local":
        first, last = first.maximum(own - p.window), last.minimum(own + p.window)

    def mask_mod(_b: Tensor, _h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        return (kv >= first[q]) & (kv <= last[q])

    return create_block_mask(mask_mod, None, None, p.seq_len, p.kv_seq_len, device=device)


def block_mask(problem: Problem, device: torch.device) -> BlockMask | None:
    """The result of create_block_mask for causal and local masks, without all n_q * n_kv pairs.

    None if every query sees every key. Queries that see none are left out (layer.as_call).
    """
    offset = max(problem.causal_offset, 0)
    n_q, n_kv = problem.seq_len - problem.empty_rows, problem.kv_seq_len
    # Query i sees the keys from i + offset - before to i + offset + after.
    before = problem.window if problem.mask == "local" else n_q + n_kv
    after = 0 if problem.causal else before
    if offset + after >= n_kv - 1 and n_q - 1 + offset - before <= 0:
        return None
    first = torch.arange(0, n_q, BLOCK, device=device)[:, None]  # query of each block
    last = (first + BLOCK - 1).clamp(max=n_q - 1)
    keys = torch.arange(0, n_kv, BLOCK, device=device)
    # A block needs no mask if its first query sees its last key, its last query its first key, and
    # it does not exceed n_q or n_kv.
    full = (keys + BLOCK - 1 <= (first + offset + after).clamp(max=n_kv - 1)) & (
        first + BLOCK <= n_q
    )
    full &= keys >= last + offset - before
    seen = (keys <= last + offset + after) & (keys + BLOCK - 1 >= first + offset - before)

    def mask_mod(_b: Tensor, _h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        within = kv <= q + offset + after
        return within & (kv >= q + offset - before) if problem.mask == "local" else within

    return BlockMask.from_kv_blocks(
        *_counts_and_indices(seen & ~full),
        *_counts_and_indices(full),
        BLOCK_SIZE=BLOCK,
        mask_mod=mask_mod,
        seq_lengths=(n_q, n_kv),
    )


def _counts_and_indices(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """For each row of blocks: their number [1, 1, rows], and all columns, theirs first [1, 1, rows,
    columns].
    """
    order = blocks.int().argsort(dim=-1, descending=True, stable=True)
    return blocks.sum(-1, dtype=torch.int32)[None, None], order.int()[None, None]
