"""How many pairs, queries and keys a mask leaves, over the whole batch and for one head.

By formula, where the mask has one.
"""

from collections.abc import Callable
from functools import lru_cache

from ..axes.lengths import counted
from ..masks import MASKS
from ..masks._sums import reach, triangle
from ..problem import Problem

CHUNK_PAIRS = 1 << 22  # of a matrix that are counted at a time


def unmasked_pairs(problem: Problem) -> int:
    """(query, key) pairs that attend."""
    p = problem
    if p.lengths:
        return _of_all(p, unmasked_pairs)
    if p.mask == "none":
        return p.batch * triangle(p, p.kv_seq_len)
    count = MASKS[p.mask].pairs
    return count(p) if count else p.batch * _counted(p)[0]


def unmasked_queries(problem: Problem) -> int:
    """Queries that attend to at least one key."""
    p = problem
    if p.lengths:
        return _of_all(p, unmasked_queries)
    by_formula = p.mask == "none" or MASKS[p.mask].pairs
    return p.batch * (p.seq_len - p.empty_rows if by_formula else _counted(p)[1])


def unmasked_keys(problem: Problem) -> int:
    """Keys that at least one query attends to."""
    p = problem
    if p.lengths:
        return _of_all(p, unmasked_keys)
    mask = MASKS.get(p.mask)
    if mask and not mask.pairs:
        return p.batch * _counted(p)[2]
    return mask.keys(p) if mask and mask.keys else p.batch * reach(p)


def _of_all(p: Problem, count: Callable[[Problem], int]) -> int:
    """Over the sequences of a ragged batch."""
    return sum(times * count(one) for one, times in counted(p))


@lru_cache(maxsize=64)
def _counted(p: Problem) -> tuple[int, int, int]:
    """Pairs, queries and keys of one entry of the batch, counted in the matrix."""
    import torch  # not needed to count by formula

    from .mask_tensors import mask_matrix

    pairs = queries = 0
    keys = torch.zeros(p.kv_seq_len, dtype=torch.bool)
    size = max(1, CHUNK_PAIRS // p.kv_seq_len)
    for first in range(0, p.seq_len, size):
        matrix = mask_matrix(p, torch.arange(first, min(p.seq_len, first + size)), [0])
        assert matrix is not None
        seen = matrix[0].expand(-1, p.kv_seq_len)
        pairs += int(seen.count_nonzero())
        queries += int(seen.any(-1).count_nonzero())
        keys |= seen.any(0)
    return pairs, queries, int(keys.count_nonzero())
