"""Stands for any mask given as a matrix: half of all pairs, by a hash of (query, key), and no key
at all for every 16th query.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from ..problem import Problem

PLACE = 2
IS_MATRIX = True
FULLY_MASKED_EVERY = 16
MULTIPLIERS = (-7046029254386353131, -4658895280553007687)  # splitmix64 (Steele et al. 2014), int64
CHUNK_PAIRS = 1 << 22  # pairs made at a time: the hash takes 8 bytes per pair


def rule(p: "Problem", entry: int, own: "Tensor", key: "Tensor") -> "Tensor":
    query = own - p.causal_offset
    mixed = (query * p.kv_seq_len + key + 1) * MULTIPLIERS[0]
    mixed = (mixed ^ (mixed >> 32)) * MULTIPLIERS[1]
    return (mixed < 0) & ((query + 1) % FULLY_MASKED_EVERY != 0)


def matrix(
    p: "Problem", rows: "Tensor", keys: "Tensor", own: "Tensor", entries: Sequence[int]
) -> "Tensor":
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


def pairs(p: "Problem") -> int:
    return p.batch * _counted(p)[0]


def queries(p: "Problem") -> int:
    return p.batch * _counted(p)[1]


def keys(p: "Problem") -> int:
    return p.batch * _counted(p)[2]


@lru_cache(maxsize=64)
def _counted(p: "Problem") -> tuple[int, int, int]:
    """Pairs, queries and keys of one entry of the batch, counted from the matrix."""
    import torch

    pairs = queries = 0
    every_key = torch.arange(p.kv_seq_len)
    keys = torch.zeros(p.kv_seq_len, dtype=torch.bool)
    size = max(1, CHUNK_PAIRS // p.kv_seq_len)
    for first in range(0, p.seq_len, size):
        rows = torch.arange(first, min(p.seq_len, first + size))
        own = (rows + p.causal_offset)[:, None]
        seen = matrix(p, rows, every_key, own, [0])[0]
        if p.causal:
            seen &= every_key <= own
        pairs += int(seen.count_nonzero())
        queries += int(seen.any(-1).count_nonzero())
        keys |= seen.any(0)
    return pairs, queries, int(keys.count_nonzero())
