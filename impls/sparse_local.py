"""A local window: each block of queries meets only the keys within its reach.

Time and bytes grow with N * window. The layout is that of Longformer's sliding chunks (Beltagy et
al. 2020, section 3.1): all blocks in one batched product, in plain operations, on CPU and GPU.
torch's flex_attention has block masks too; the backend `flex` measures that.
"""

import torch
from torch import Tensor

from .backend import Call, Inputs, Weights
from .layer import as_call
from .problem import Problem
from .shared.softmax import attend_in_blocks, pad_tokens, refuse_other_masks

COMPUTES = ("local",)
MIN_ROWS = 64  # of a block: narrower products do not fill a processor
ALIGNED = 8  # keys of a block: rows of 16 bytes in half precision, which tensor cores need


def why_not(problem: Problem, device: torch.device) -> str | None:
    return refuse_other_masks("local", problem)


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    return as_call(problem, inputs, weights, lambda q, k, v: core(q, k, v, problem), fills=True)


def core(q: Tensor, k: Tensor, v: Tensor, problem: Problem) -> Tensor:
    """Block j holds the queries from j * rows on, and the keys from `before` before the first of
    them to `after` after the last.
    """
    p, n_q = problem, q.shape[2]
    reach = _round_up(min(p.window, p.kv_seq_len), ALIGNED)
    rows = min(max(MIN_ROWS, reach), n_q)
    blocks = -(-n_q // rows)
    # The last block has the most keys before it, the first block the most after it.
    before = min(reach, p.causal_offset + (blocks - 1) * rows)
    after = 0 if p.causal else min(reach, max(0, p.kv_seq_len - p.causal_offset - rows))
    first, end = p.causal_offset - before, p.causal_offset + blocks * rows + after

    def blocked(x: Tensor) -> Tensor:
        """Overlapping views."""
        padded = pad_tokens(x, -first, end - p.kv_seq_len)
        return padded.unfold(2, before + rows + after, rows).mT

    masked = _masked(p, torch.arange(-before, rows + after, device=q.device), rows, blocks)
    q = pad_tokens(q, 0, blocks * rows - n_q).unflatten(2, (blocks, rows))
    o = attend_in_blocks(q, k, v, blocked, masked, p)  # [batch, heads, blocks, rows, d_v]
    return o.flatten(2, 3)[:, :, :n_q]


def _masked(p: Problem, keys: Tensor, rows: int, blocks: int) -> Tensor:
    """[blocks, rows, keys], from the keys' positions relative to the start of their block.

    The window is the same in all blocks, the ends of the sequence are not.
    """
    own = torch.arange(rows, device=keys.device)[:, None]
    far = (keys - own).abs_() > p.window
    if p.causal:
        far |= keys > own
    first, end = p.causal_offset, p.causal_offset + blocks * rows
    positions = torch.arange(first, end, rows, device=keys.device)[:, None] + keys
    outside = (positions < 0) | (positions >= p.kv_seq_len)
    # Every query keeps its own position, even one that only fills up the last block.
    return (outside[:, None] & (keys != own)).logical_or_(far)


def _round_up(count: int, step: int) -> int:
    return -(-count // step) * step
