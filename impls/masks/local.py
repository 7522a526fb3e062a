"""Keys at most `window` positions away (Beltagy et al. 2020, Longformer)."""

from typing import Any

from ._shared import Problem, Tensor, capped_sum

PLACE = 3
WINDOW = "keys to either side"


def default_window(n_kv: int) -> int:
    return 128


def band(p: Problem, own: Any) -> tuple[Any, Any]:
    return own - p.window, own + p.window


def by_distance(p: Problem, distance: Tensor) -> Tensor:
    return distance.abs_() <= p.window


def rule(p: Problem, entry: int, own: Tensor, key: Tensor) -> Tensor:
    return (key - own).abs() <= p.window


def pairs(p: Problem) -> int:
    """A query sees itself, up to `window` keys before it and, unless causal, as many after it."""
    first, last, end = p.causal_offset, p.causal_offset + p.seq_len - 1, p.kv_seq_len - 1
    before = capped_sum(first, last, p.window)
    after = 0 if p.causal else capped_sum(end - last, end - first, p.window)
    return p.batch * (before + p.seq_len + after)


def keys(p: Problem) -> int:
    first = max(0, p.causal_offset - p.window)
    last = p.causal_offset + p.seq_len - 1 + (0 if p.causal else p.window)
    return p.batch * (min(last, p.kv_seq_len - 1) - first + 1)
