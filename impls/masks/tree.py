"""Queries are drafted tokens in a tree in which each has `window` children, level by level: the
keys before them, which are cached, and of theirs those of the query and its ancestors (Miao et al.
2023, SpecInfer).
"""

from collections.abc import Iterator, Sequence

from ._shared import Problem, Tensor

PLACE = 7
WINDOW = "children of a drafted token"


def default_window(n_kv: int) -> int:
    return 2


def tree_levels(tokens: int, children: int) -> Iterator[int]:
    """How many of the drafted tokens are at each level, from the root; the last may be cut off.

    Token i's parent is token (i - 1) // children.
    """
    size = 1
    while tokens > 0:
        yield min(size, tokens)
        tokens, size = tokens - size, size * children


def rule(p: Problem, entry: int, own: Tensor, key: Tensor) -> Tensor:
    token, drafted = own - p.causal_offset + 0 * key, key - p.causal_offset
    while (is_deeper := token > drafted.clamp(min=0)).any():
        token = token - is_deeper * (token - (token - 1) // p.window)  # to its parent
    return (drafted < 0) | (token == drafted)


def matrix(p: Problem, rows: Tensor, keys: Tensor, own: Tensor, entries: Sequence[int]) -> Tensor:
    drafted, ancestor = keys - p.causal_offset, rows[:, None]  # below 0: cached
    if p.window == 1:
        return (drafted <= ancestor)[None]
    seen = drafted < 0
    for _ in tree_levels(p.seq_len, p.window):
        seen = seen | (drafted == ancestor)
        ancestor = (ancestor - 1).div(p.window, rounding_mode="floor").clamp(min=0)
    return seen[None]


def pairs(p: Problem) -> int:
    """The cached keys, and as many drafted ones as the query has levels down to its own."""
    levels = enumerate(tree_levels(p.seq_len, p.window), 1)
    one = p.seq_len * p.causal_offset + sum(depth * tokens for depth, tokens in levels)
    return p.batch * one
