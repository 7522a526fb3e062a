"""Stands for any mask given as a matrix: half of all pairs, by a hash of (query, key), and no key
at all for every 16th query.
"""

from collections.abc import Sequence

from ._shared import Problem, Tensor

PLACE = 2
IS_MATRIX = True
FULLY_MASKED_EVERY = 16
MULTIPLIERS = (-7046029254386353131, -4658895280553007687)  # splitmix64 (Steele et al. 2014), int64
CHUNK_PAIRS = 1 << 22  # pairs made at a time: the hash takes 8 bytes per pair


def rule(p: Problem, entry: int, own: Tensor, key: Tensor) -> Tensor:
    query = own - p.causal_offset
    mixed = (query * p.kv_seq_len + key + 1) * MULTIPLIERS[0]
    mixed = (mixed ^ (mixed >> 32)) * MULTIPLIERS[1]
    return (mixed < 0) & ((query + 1) % FULLY_MASKED_EVERY != 0)


def matrix(p: Problem, rows: Tensor, keys: Tensor, own: Tensor, entries: Sequence[int]) -> Tensor:
    import torch

    seen = torch.empty(rows.numel(), p.kv_seq_len, dtype=torch.bool, device=rows.device)
    size = max(1, CHUNK_PAIRS // p.kv_seq_len)
    for first in range(0, rows.numel(), size):
        chunk = rows[first : first + size]
        mixed = (chunk[:, None] * p.kv_seq_len + keys + 1).mul_(MULTIPLIERS[0])
        mixed.bitwise_xor_(mixed >> 32).mul_(MULTIPLIERS[1])
        sees_keys = (chunk % FULLY_MASKED_EVERY != FULLY_MASKED_EVERY - 1)[:, None]
        seen[first : first + size] = (mixed < 0) & sees_keys
    return seen[None]
