"""How many pairs, queries and keys a mask leaves, over the whole batch and for one head.

Counted by formula.
"""

from collections.abc import Callable

from ..axes.lengths import counted
from ..masks import MASKS
from ..masks._sums import reach, triangle
from ..problem import Problem


def unmasked_pairs(problem: Problem) -> int:
    """(query, key) pairs that attend."""
    p = problem
    if p.lengths:
        return _of_all(p, unmasked_pairs)
    return p.batch * triangle(p, p.kv_seq_len) if p.mask == "none" else MASKS[p.mask].pairs(p)


def unmasked_queries(problem: Problem) -> int:
    """Queries that attend to at least one key."""
    p = problem
    if p.lengths:
        return _of_all(p, unmasked_queries)
    count = MASKS[p.mask].queries if p.mask != "none" else None
    return count(p) if count else p.batch * (p.seq_len - p.empty_rows)


def unmasked_keys(problem: Problem) -> int:
    """Keys that at least one query attends to."""
    p = problem
    if p.lengths:
        return _of_all(p, unmasked_keys)
    count = MASKS[p.mask].keys if p.mask != "none" else None
    return count(p) if count else p.batch * reach(p)


def _of_all(p: Problem, count: Callable[[Problem], int]) -> int:
    """Over the sequences of a ragged batch."""
    return sum(times * count(one) for one, times in counted(p))
