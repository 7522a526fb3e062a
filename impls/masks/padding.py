"""Sequences of unequal length in one batch: entry b has the first 3/4, 4/4, 2/4, 3/4, 3/4, 4/4, ...
of the keys.
"""

from collections.abc import Sequence

from ._shared import Problem, Tensor, reach, triangle

PLACE = 1
QUARTERS = (3, 4, 2, 3)


def padded_length(problem: Problem, entry: int) -> int:
    """The number of keys of this entry of the batch."""
    return -(-problem.kv_seq_len * QUARTERS[entry % len(QUARTERS)] // 4)


def rule(p: Problem, entry: int, own: Tensor, key: Tensor) -> Tensor:
    return key < padded_length(p, entry)


def matrix(p: Problem, rows: Tensor, keys: Tensor, own: Tensor, entries: Sequence[int]) -> Tensor:
    lengths = rows.new_tensor([padded_length(p, entry) for entry in entries])
    return keys < lengths[:, None, None]


def pairs(p: Problem) -> int:
    return sum(triangle(p, padded_length(p, entry)) for entry in range(p.batch))


def keys(p: Problem) -> int:
    return sum(min(reach(p), padded_length(p, entry)) for entry in range(p.batch))
