"""Random blocks (BigBird): each block of queries gathers the few blocks of keys it sees.

The random part of Zaheer et al. 2020. Time and bytes grow with N * window. The pattern is drawn
before the call, as a kernel gets its tables.
"""

import torch
from torch import Tensor

from .backend import Call, Inputs, Weights
from .layer import as_call
from .masks.blocks import BLOCK, block_table
from .problem import Problem
from .shared.softmax import attend_in_blocks, pad_tokens, refuse_other_masks

COMPUTES = ("blocks",)


def why_not(problem: Problem, device: torch.device) -> str | None:
    return refuse_other_masks("blocks", problem)


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    table = torch.tensor(block_table(problem))  # [blocks of queries, window], padded with -1
    table = table[:, : max(1, int((table >= 0).sum(1).max()))].to(inputs.query.device)
    return as_call(
        problem, inputs, weights, lambda q, k, v: core(q, k, v, table, problem), fills=True
    )


def core(q: Tensor, k: Tensor, v: Tensor, table: Tensor, problem: Problem) -> Tensor:
    p, n_q, (blocks, seen) = problem, q.shape[2], table.shape
    before = p.causal_offset % BLOCK  # queries start within a block if there are more keys
    key_blocks = -(-p.kv_seq_len // BLOCK)
    chosen = table.clamp(min=0).flatten()

    def blocked(x: Tensor) -> Tensor:
        padded = pad_tokens(x, 0, key_blocks * BLOCK - p.kv_seq_len)
        by_block: Tensor = padded.unflatten(2, (key_blocks, BLOCK))
        return by_block.index_select(2, chosen).view(*x.shape[:2], blocks, seen * BLOCK, -1)

    q = pad_tokens(q, before, blocks * BLOCK - before - n_q).unflatten(2, (blocks, BLOCK))
    masked = _masked(p, table)
    o = attend_in_blocks(q, k, v, blocked, masked, p)  # [batch, heads, blocks, BLOCK, d_v]
    return o.flatten(2, 3)[:, :, before : before + n_q]


def _masked(p: Problem, table: Tensor) -> Tensor:
    """[blocks, rows or 1, keys].

    Every query keeps a key: its own block starts with one, at or before its own position.
    """
    step = torch.arange(BLOCK, device=table.device)
    positions = (table[:, :, None] * BLOCK + step).flatten(1)[:, None]  # [blocks, 1, keys]
    masked = (positions < 0) | (positions >= p.kv_seq_len)
    if not p.causal:
        return masked
    first = p.causal_offset // BLOCK * BLOCK
    own = torch.arange(first, first + table.shape[0] * BLOCK, device=table.device)
    return masked | (positions > own.view(-1, BLOCK, 1))
