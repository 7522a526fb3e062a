"""Keys of the query's own chunk, tokens c * `window` .. (c + 1) * `window` - 1 (the layers with
rotary positions of Llama 4).
"""

from collections.abc import Sequence
from typing import Any

from ._shared import Problem, Tensor, reach, sum_of_range

PLACE = 6
WINDOW = "tokens of a chunk"


def default_window(n_kv: int) -> int:
    return 128


def band(p: Problem, own: Any) -> tuple[Any, Any]:
    first = own // p.window * p.window
    return first, first + p.window - 1


def rule(p: Problem, entry: int, own: Tensor, key: Tensor) -> Tensor:
    chunk = own // p.window
    return (key >= chunk * p.window) & (key < (chunk + 1) * p.window)


def matrix(p: Problem, rows: Tensor, keys: Tensor, own: Tensor, entries: Sequence[int]) -> Tensor:
    return (keys // p.window == own // p.window)[None]


def pairs(p: Problem) -> int:
    """Whole chunks before a position, and what it leaves of its own."""

    def before(position: int) -> int:
        whole, rest = divmod(position, p.window)
        if p.causal:
            return whole * sum_of_range(1, p.window) + sum_of_range(1, rest)
        return whole * p.window**2 + rest**2  # kv_seq_len == seq_len, so the last chunk ends there

    return p.batch * (before(p.causal_offset + p.seq_len) - before(p.causal_offset))


def keys(p: Problem) -> int:
    return p.batch * (reach(p) - p.causal_offset // p.window * p.window)
