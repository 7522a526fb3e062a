"""Which (query, key) pairs a problem's mask keeps, as tensors: any part of it, anywhere, by the
rule of its kind (mask_rules.py).
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..problem import Problem
from .rules import BLOCK, block_table, padded_length

BLIND_EVERY = 16
MULTIPLIERS = (
    -7046029254386353131,
    -4658895280553007687,
)  # of splitmix64 (Steele et al. 2014), as signed numbers
CHUNK_PAIRS = 1 << 22  # of a random mask made at a time: its hash takes 8 bytes a pair


def kept(problem: Problem, rows: Tensor, entries: Sequence[int] | None = None) -> Tensor | None:
    """True where query rows[i] (int64) sees key j: [batch or 1, rows or 1, kv_seq_len], 1 where all
    are alike; None where all see all.

    `entries` names the entries of the batch, where only some are asked about. Masks other than
    padding are alike for all of them.
    """
    p = problem
    keys = torch.arange(p.kv_seq_len, device=rows.device)
    triangle = keys <= (rows + p.causal_offset)[:, None] if p.causal else None
    if p.mask == "none":
        return None if triangle is None else triangle[None]
    seen = _seen(p, rows, keys, range(p.batch) if entries is None else entries)
    return seen if triangle is None else seen & triangle


def _seen(p: Problem, rows: Tensor, keys: Tensor, entries: Sequence[int]) -> Tensor:
    if p.mask == "padding":
        lengths = torch.tensor([padded_length(p, entry) for entry in entries], device=rows.device)
        return keys < lengths[:, None, None]
    if p.mask == "random":
        return _random(rows, p.kv_seq_len)[None]
    own = (rows + p.causal_offset)[:, None]  # the key at the query's own position
    if p.mask == "local":
        return ((keys - own).abs_() <= p.window)[None]
    if p.mask == "strided":
        return ((keys - own).remainder_(p.window) == 0)[None]
    chosen = torch.tensor(
        block_table(p), device=rows.device
    )  # [blocks of queries, window], -1 where there are fewer
    first = p.causal_offset // BLOCK
    wanted = chosen[own[:, 0] // BLOCK - first]  # [rows, window]
    return (wanted[:, :, None] == (keys // BLOCK)[None, None]).any(1)[None]


def _random(rows: Tensor, n_kv: int) -> Tensor:
    made = torch.empty(rows.numel(), n_kv, dtype=torch.bool, device=rows.device)
    keys = torch.arange(n_kv, device=rows.device)
    chunk = max(1, CHUNK_PAIRS // n_kv)
    for first in range(0, rows.numel(), chunk):
        some = rows[first : first + chunk]
        mixed = (some[:, None] * n_kv + keys + 1).mul_(MULTIPLIERS[0])
        mixed.bitwise_xor_(mixed >> 32).mul_(MULTIPLIERS[1])
        made[first : first + chunk] = (mixed < 0) & (some % BLIND_EVERY != BLIND_EVERY - 1)[:, None]
    return made


def blind_rows(problem: Problem, rows: Tensor) -> Tensor | None:
    """Which of these queries see no key at all, [rows]; None where that cannot be. Leading queries
    of a causal problem apart.
    """
    if problem.mask != "random":
        return None
    seen = kept(problem, rows)
    assert seen is not None
    return seen[0].any(-1).logical_not_()


def seen_rows(problem: Problem, device: torch.device) -> Tensor:
    """The queries that a backend is given: all but the leading ones that a causal mask leaves
    without keys.
    """
    return torch.arange(problem.empty_rows, problem.seq_len, device=device)


def given(problem: Problem, device: torch.device) -> Tensor | None:
    """What a caller would hand over as a matrix, bool [rows, kv_seq_len], True where a pair is
    kept; None for masks that have a rule.

    Made once, before the call, and counted among the inputs. Blind queries see every key in it, so
    that no softmax is taken over nothing: their output is set to zero afterwards (layer.as_call).
    """
    if problem.mask != "random":
        return None
    rows = seen_rows(problem, device)
    seen, blind = kept(problem, rows), blind_rows(problem, rows)
    assert seen is not None
    assert blind is not None
    return seen[0].logical_or_(blind[:, None])
