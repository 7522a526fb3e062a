"""Keys at whole multiples of `window` away (Child et al. 2019, Sparse Transformer, second head)."""

from math import sqrt

from ._shared import Problem, Tensor, sum_of_quotients

PLACE = 4
WINDOW = "the stride"


def default_window(n_kv: int) -> int:
    return max(1, round(sqrt(n_kv)))


def by_distance(p: Problem, distance: Tensor) -> Tensor:
    return distance.remainder_(p.window) == 0


def rule(p: Problem, entry: int, own: Tensor, key: Tensor) -> Tensor:
    return (key - own) % p.window == 0


def pairs(p: Problem) -> int:
    start, end = p.causal_offset, p.causal_offset + p.seq_len
    if p.causal:
        one = sum_of_quotients(end, p.window) - sum_of_quotients(start, p.window) + p.seq_len
        return p.batch * one
    total = 0
    for remainder in range(min(p.window, p.kv_seq_len)):
        queries = range(start + (remainder - start) % p.window, end, p.window)
        total += _on_stride(p, remainder) * len(queries)
    return p.batch * total


def keys(p: Problem) -> int:
    end = p.causal_offset + p.seq_len
    positions = range(end - min(p.window, p.seq_len), end)
    return p.batch * sum(_on_stride(p, own) for own in positions)


def _on_stride(p: Problem, own: int) -> int:
    """The number of keys that the query at this position sees."""
    return (own if p.causal else p.kv_seq_len - 1 - own % p.window) // p.window + 1
