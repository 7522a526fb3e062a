"""A random pattern of blocks, computed as such: each block of queries gathers the few blocks of
keys that it sees (BigBird's random part).

Time and bytes grow with N * window. The pattern is drawn and laid out before the call, as a kernel
is given its tables.
"""

import torch
from torch import Tensor

from ._sparse import padded, wants, within_blocks
from .backend import Call, Inputs, Weights
from .layer import as_call
from .masks.rules import BLOCK, block_table
from .problem import Problem

MASKS = ("blocks",)
PLAIN_OPERATIONS = True


def why_not(problem: Problem, device: torch.device) -> str | None:
    return wants("blocks", problem)


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    table = torch.tensor(
        block_table(problem)
    )  # [blocks of queries, window], -1 where there are fewer
    table = table[:, : max(1, int((table >= 0).sum(1).max()))].to(inputs.query.device)
    return as_call(problem, inputs, weights, lambda q, k, v: core(q, k, v, table, problem))


def core(q: Tensor, k: Tensor, v: Tensor, table: Tensor, problem: Problem) -> Tensor:
    p, n_q, (blocks, seen) = problem, q.shape[2], table.shape
    before = p.causal_offset % BLOCK  # queries begin within a block, where the keys are longer
    key_blocks = -(-p.kv_seq_len // BLOCK)
    chosen = table.clamp(min=0).flatten()

    def blocked(x: Tensor) -> Tensor:
        by_block: Tensor = padded(x, 0, key_blocks * BLOCK - p.kv_seq_len).unflatten(
            2, (key_blocks, BLOCK)
        )
        return by_block.index_select(2, chosen).view(*x.shape[:2], blocks, seen * BLOCK, -1)

    rows = padded(q, before, blocks * BLOCK - before - n_q).unflatten(2, (blocks, BLOCK))
    return within_blocks(rows, k, v, blocked, _hidden(p, table), p).flatten(2, 3)[
        :, :, before : before + n_q
    ]


def _hidden(p: Problem, table: Tensor) -> Tensor:
    """[blocks, rows or 1, keys]. No query is without a key: its own block begins with one, at or
    before its own place.
    """
    step = torch.arange(BLOCK, device=table.device)
    places = (table[:, :, None] * BLOCK + step).flatten(1)[:, None]  # [blocks, 1, keys]
    hidden = (places < 0) | (places >= p.kv_seq_len)
    if not p.causal:
        return hidden
    first = p.causal_offset // BLOCK
    own = torch.arange(first * BLOCK, (first + table.shape[0]) * BLOCK, device=table.device).view(
        -1, BLOCK, 1
    )
    return hidden | (places > own)
