"""A local window, computed as such: each block of queries meets the keys within its reach, so time
and bytes grow with N * window.

The form is that of Longformer's sliding chunks (Beltagy et al. 2020, section 3.1): all blocks in
one batched product, in plain operations, on the CPU and on a GPU. torch's flex_attention has block
masks too; its backend is another one.
"""

import torch
from torch import Tensor

from ._sparse import padded, wants, within_blocks
from .backend import Call, Inputs, Weights
from .layer import as_call
from .problem import Problem

MASKS = ("local",)
PLAIN_OPERATIONS = True
LEAST_ROWS = 64  # of a block: narrower products do not fill a processor
ALIGNED = 8  # keys of a block: rows of 16 bytes in half precision, which tensor cores want


def why_not(problem: Problem, device: torch.device) -> str | None:
    return wants("local", problem)


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    return as_call(problem, inputs, weights, lambda q, k, v: core(q, k, v, problem))


def core(q: Tensor, k: Tensor, v: Tensor, problem: Problem) -> Tensor:
    """Block j holds the queries from j * rows on, and the keys from `before` the first of them to
    `after` the last.
    """
    p, n_q = problem, q.shape[2]
    reach = _up(min(p.window, p.kv_seq_len), ALIGNED)
    rows = min(max(LEAST_ROWS, reach), n_q)
    blocks = -(-n_q // rows)
    # No block has more keys before it than the last one, nor more after it than the first.
    before = min(reach, p.causal_offset + (blocks - 1) * rows)
    after = 0 if p.causal else min(reach, max(0, p.kv_seq_len - p.causal_offset - rows))
    first, end = p.causal_offset - before, p.causal_offset + blocks * rows + after

    def blocked(x: Tensor) -> Tensor:
        return (
            padded(x, -first, end - p.kv_seq_len).unfold(2, before + rows + after, rows).mT
        )  # views that overlap

    hidden = _hidden(p, torch.arange(-before, rows + after, device=q.device), rows, blocks)
    o = within_blocks(
        padded(q, 0, blocks * rows - n_q).unflatten(2, (blocks, rows)), k, v, blocked, hidden, p
    )
    return o.flatten(2, 3)[:, :, :n_q]


def _hidden(p: Problem, keys: Tensor, rows: int, blocks: int) -> Tensor:
    """[blocks, rows, keys], from the keys' places after the start of their block. The window is
    alike in all blocks, the ends are not.
    """
    own = torch.arange(rows, device=keys.device)[:, None]
    far = (keys - own).abs_() > p.window
    if p.causal:
        far |= keys > own
    starts = torch.arange(
        p.causal_offset, p.causal_offset + blocks * rows, rows, device=keys.device
    )
    places = starts[:, None] + keys
    outside = (places < 0) | (places >= p.kv_seq_len)
    return (outside[:, None] & (keys != own)).logical_or_(
        far
    )  # every query keeps its own place, even one that fills up the last block


def _up(count: int, step: int) -> int:
    return -(-count // step) * step
