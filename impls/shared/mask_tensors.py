"""Masks as tensors: which (query, key) pairs attend, for any part of a mask (kinds: rules.py)."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..axes.lengths import starts
from ..masks.rules import BLOCK, block_table, padded_length, tree_levels
from ..problem import Problem

FULLY_MASKED_EVERY = 16  # a random mask leaves one query in so many without a key
MULTIPLIERS = (-7046029254386353131, -4658895280553007687)  # splitmix64 (Steele et al. 2014), int64
CHUNK_PAIRS = 1 << 22  # pairs of a random mask made at a time: the hash takes 8 bytes per pair


def mask_matrix(
    problem: Problem, rows: Tensor, entries: Sequence[int] | None = None
) -> Tensor | None:
    """True where query rows[i] (int64) attends to key j; None if every query attends to every key.

    [batch or 1, rows or 1, kv_seq_len]: 1 where the mask is the same along that dimension.
    `entries` selects entries of the batch; only the padding mask differs between entries.
    """
    p = problem
    keys = torch.arange(p.kv_seq_len, device=rows.device)
    if p.lengths:
        return _ragged(p, rows, keys)[None]
    own = (rows + p.causal_offset)[:, None]  # the key at the query's own position
    triangle = keys <= own if p.causal else None
    if p.mask == "none":
        return None if triangle is None else triangle[None]
    entries = range(p.batch) if entries is None else entries
    matrix = _without_triangle(p, rows, keys, own, entries)
    return matrix if triangle is None else matrix & triangle


def _ragged(p: Problem, rows: Tensor, keys: Tensor) -> Tensor:
    """[rows, kv_seq_len] of packed sequences: the keys of the query's own, and of them its mask."""
    of_queries, of_keys = (torch.tensor(one, device=rows.device) for one in starts(p.lengths))
    sequence = torch.searchsorted(of_queries, rows, right=True) - 1
    end = of_keys[sequence + 1]
    own = (end - of_queries[sequence + 1] + rows)[:, None]  # the last query is at the last key
    seen = keys >= of_keys[sequence][:, None]
    seen &= keys <= own if p.causal else keys < end[:, None]
    return seen if p.mask == "none" else seen & by_distance(p, keys - own)


def by_distance(p: Problem, distance: Tensor) -> Tensor:
    """Whether masks local and strided leave a pair, from how far the key is after the query's own;
    overwrites `distance`.
    """
    if p.mask == "local":
        return distance.abs_() <= p.window
    return distance.remainder_(p.window) == 0


def _without_triangle(
    p: Problem, rows: Tensor, keys: Tensor, own: Tensor, entries: Sequence[int]
) -> Tensor:
    if p.mask == "padding":
        lengths = torch.tensor([padded_length(p, entry) for entry in entries], device=rows.device)
        return keys < lengths[:, None, None]
    if p.mask == "random":
        return _random(rows, p.kv_seq_len)[None]
    if p.mask in ("local", "strided"):
        return by_distance(p, keys - own)[None]
    if p.mask == "chunked":
        return (keys // p.window == own // p.window)[None]
    if p.mask == "tree":
        return _tree(p, rows[:, None], keys - p.causal_offset)[None]
    table = torch.tensor(block_table(p), device=rows.device)  # [blocks of queries, window]
    blocks = table[own[:, 0] // BLOCK - p.causal_offset // BLOCK]  # [rows, window]
    return (blocks[:, :, None] == (keys // BLOCK)[None, None]).any(1)[None]


def _tree(p: Problem, rows: Tensor, drafted: Tensor) -> Tensor:
    """[rows, kv_seq_len]; `drafted`: the number of each key among the drafted tokens, below 0 of
    cached ones.
    """
    if p.window == 1:
        return drafted <= rows
    seen, ancestor = drafted < 0, rows
    for _ in tree_levels(p.seq_len, p.window):
        seen = seen | (drafted == ancestor)
        ancestor = (ancestor - 1).div(p.window, rounding_mode="floor").clamp(min=0)
    return seen


def _random(rows: Tensor, n_kv: int) -> Tensor:
    matrix = torch.empty(rows.numel(), n_kv, dtype=torch.bool, device=rows.device)
    keys = torch.arange(n_kv, device=rows.device)
    size = max(1, CHUNK_PAIRS // n_kv)
    for first in range(0, rows.numel(), size):
        chunk = rows[first : first + size]
        mixed = (chunk[:, None] * n_kv + keys + 1).mul_(MULTIPLIERS[0])
        mixed.bitwise_xor_(mixed >> 32).mul_(MULTIPLIERS[1])
        sees_keys = (chunk % FULLY_MASKED_EVERY != FULLY_MASKED_EVERY - 1)[:, None]
        matrix[first : first + size] = (mixed < 0) & sees_keys
    return matrix


def computed_rows(problem: Problem, device: torch.device) -> Tensor:
    """The queries that backends compute: all but the leading ones that a causal mask empties."""
    return torch.arange(problem.empty_rows, problem.seq_len, device=device)


def fully_masked_rows(problem: Problem, rows: Tensor) -> Tensor | None:
    """True for each of these queries that sees no key, [rows]; None if the mask has no such query.

    Does not count the leading queries of a causal problem, which `computed_rows` leaves out.
    """
    if problem.mask != "random":
        return None
    matrix = mask_matrix(problem, rows)
    assert matrix is not None
    return matrix[0].any(-1).logical_not_()


def materialized_mask(problem: Problem, device: torch.device) -> Tensor | None:
    """The mask as a caller would pass it, bool [computed rows, kv_seq_len], True where a pair
    attends; None for masks that have a rule.

    Made once before the call and counted as an input. Fully masked queries attend to every key in
    it, so that no softmax runs over nothing; layer.as_call then sets their output to zero.
    """
    if problem.mask != "random":
        return None
    rows = computed_rows(problem, device)
    matrix, fully_masked = mask_matrix(problem, rows), fully_masked_rows(problem, rows)
    assert matrix is not None
    assert fully_masked is not None
    return matrix[0].logical_or_(fully_masked[:, None])
