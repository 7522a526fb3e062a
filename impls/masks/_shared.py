"""What mask files share: types, so that none imports torch; sums in closed form, of which counts of
pairs consist; and what `causal` alone leaves.
"""

from typing import TYPE_CHECKING, Any

from ..problem_fields import ProblemFields as Problem

__all__ = ["Problem", "Tensor"]

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any


def triangle(p: Problem, length: int) -> int:
    """Pairs with the first `length` keys: row i has min(length, max(0, i + offset + 1)) of them, a
    ramp from row `first` to row `full`.
    """
    if not p.causal:
        return p.seq_len * length
    offset = p.causal_offset
    first, full = max(0, -offset), min(p.seq_len, max(0, length - offset))
    return sum_of_range(first + offset + 1, full + offset) + (p.seq_len - full) * length


def reach(p: Problem) -> int:
    """Keys that at least one query sees."""
    return min(p.kv_seq_len, max(0, p.seq_len + p.causal_offset)) if p.causal else p.kv_seq_len


def sum_of_range(first: int, last: int) -> int:
    """first + ... + last, 0 if the range is empty."""
    return (first + last) * (last - first + 1) // 2 if last >= first else 0


def capped_sum(first: int, last: int, cap: int) -> int:
    """min(first, cap) + ... + min(last, cap)."""
    growing = sum_of_range(first, min(last, cap))
    return growing + cap * max(0, last - max(first - 1, cap))


def sum_of_quotients(end: int, divisor: int) -> int:
    """0 // divisor + ... + (end - 1) // divisor."""
    whole, rest = divmod(end, divisor)
    return divisor * sum_of_range(1, whole - 1) + rest * whole
