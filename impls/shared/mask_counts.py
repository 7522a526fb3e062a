"""How many pairs, queries and keys a mask leaves, over the whole batch and for one head.

Counted by formula.
"""

from collections.abc import Callable
from functools import lru_cache

from ..axes.lengths import counted
from ..masks.rules import BLOCK, block_table, padded_length, tree_levels
from ..problem import Problem


def unmasked_pairs(problem: Problem) -> int:
    """(query, key) pairs that attend."""
    p = problem
    if p.lengths:
        return _of_all(p, unmasked_pairs)
    if p.mask == "random":
        return p.batch * _counted(p)[0]
    if p.mask == "padding":
        return sum(_triangle(p, padded_length(p, entry)) for entry in range(p.batch))
    if p.mask == "none":
        return p.batch * _triangle(p, p.kv_seq_len)
    counts = {
        "local": _local,
        "strided": _strided,
        "blocks": _blocks,
        "chunked": _chunked,
        "tree": _tree,
    }
    return p.batch * counts[p.mask](p)


def unmasked_queries(problem: Problem) -> int:
    """Queries that attend to at least one key."""
    p = problem
    if p.lengths:
        return _of_all(p, unmasked_queries)
    return p.batch * (_counted(p)[1] if p.mask == "random" else p.seq_len - p.empty_rows)


def unmasked_keys(problem: Problem) -> int:
    """Keys that at least one query attends to."""
    p = problem
    if p.lengths:
        return _of_all(p, unmasked_keys)
    reach = min(p.kv_seq_len, max(0, p.seq_len + p.causal_offset)) if p.causal else p.kv_seq_len
    if p.mask == "padding":
        return sum(min(reach, padded_length(p, entry)) for entry in range(p.batch))
    if p.mask == "random":
        return p.batch * _counted(p)[2]
    if p.mask == "local":
        first = max(0, p.causal_offset - p.window)
        last = p.causal_offset + p.seq_len - 1 + (0 if p.causal else p.window)
        return p.batch * (min(last, p.kv_seq_len - 1) - first + 1)
    if p.mask == "chunked":
        return p.batch * (reach - p.causal_offset // p.window * p.window)
    if p.mask == "strided":
        end = p.causal_offset + p.seq_len
        positions = range(end - min(p.window, p.seq_len), end)
        return p.batch * sum(_on_stride(p, own) for own in positions)
    return p.batch * (sum(_reach_of_blocks(p).values()) if p.mask == "blocks" else reach)


def _of_all(p: Problem, count: Callable[[Problem], int]) -> int:
    """Over the sequences of a ragged batch."""
    return sum(times * count(one) for one, times in counted(p))


def _triangle(p: Problem, length: int) -> int:
    """Pairs with the first `length` keys: row i has min(length, max(0, i + offset + 1)) of them, a
    ramp from row `first` to row `full`.
    """
    if not p.causal:
        return p.seq_len * length
    offset = p.causal_offset
    first, full = max(0, -offset), min(p.seq_len, max(0, length - offset))
    return _sum_of_range(first + offset + 1, full + offset) + (p.seq_len - full) * length


def _local(p: Problem) -> int:
    """A query sees itself, up to `window` keys before it and, unless causal, as many after it."""
    first, last, end = p.causal_offset, p.causal_offset + p.seq_len - 1, p.kv_seq_len - 1
    before = _capped_sum(first, last, p.window)
    after = 0 if p.causal else _capped_sum(end - last, end - first, p.window)
    return before + p.seq_len + after


def _strided(p: Problem) -> int:
    start, end = p.causal_offset, p.causal_offset + p.seq_len
    if p.causal:
        return _sum_of_quotients(end, p.window) - _sum_of_quotients(start, p.window) + p.seq_len
    total = 0
    for remainder in range(min(p.window, p.kv_seq_len)):
        queries = range(start + (remainder - start) % p.window, end, p.window)
        total += _on_stride(p, remainder) * len(queries)
    return total


def _on_stride(p: Problem, own: int) -> int:
    """The number of keys that the query at this position sees."""
    return (own if p.causal else p.kv_seq_len - 1 - own % p.window) // p.window + 1


def _chunked(p: Problem) -> int:
    """Whole chunks before a position, and what it leaves of its own."""

    def before(position: int) -> int:
        whole, rest = divmod(position, p.window)
        if p.causal:
            return whole * _sum_of_range(1, p.window) + _sum_of_range(1, rest)
        return whole * p.window**2 + rest**2  # kv_seq_len == seq_len, so the last chunk ends there

    return before(p.causal_offset + p.seq_len) - before(p.causal_offset)


def _tree(p: Problem) -> int:
    """The cached keys, and as many drafted ones as the query has levels down to its own."""
    levels = enumerate(tree_levels(p.seq_len, p.window), 1)
    return p.seq_len * p.causal_offset + sum(depth * tokens for depth, tokens in levels)


def _blocks(p: Problem) -> int:
    total = 0
    for queries, own, chosen in _rows_of_blocks(p):
        keys = sum(
            min(p.kv_seq_len, (block + 1) * BLOCK) - block * BLOCK
            for block in chosen
            if block != own or not p.causal
        )
        total += len(queries) * keys
        if p.causal:
            total += _sum_of_range(queries[0] - own * BLOCK + 1, queries[-1] - own * BLOCK + 1)
    return total


def _reach_of_blocks(p: Problem) -> dict[int, int]:
    """For each block of keys: how many of its keys some query sees."""
    reach: dict[int, int] = {}
    for queries, own, chosen in _rows_of_blocks(p):
        for block in chosen:
            end = min(p.kv_seq_len, (block + 1) * BLOCK)
            if p.causal and block == own:
                end = queries[-1] + 1
            reach[block] = max(reach.get(block, 0), end - block * BLOCK)
    return reach


def _rows_of_blocks(p: Problem) -> list[tuple[range, int, list[int]]]:
    """For each block of queries: their positions, its number, and the blocks of keys it sees."""
    first, end = p.causal_offset, p.causal_offset + p.seq_len
    found = []
    for own, chosen in enumerate(block_table(p), first // BLOCK):
        positions = range(max(first, own * BLOCK), min(end, (own + 1) * BLOCK))
        found.append((positions, own, [block for block in chosen if block >= 0]))
    return found


@lru_cache(maxsize=64)
def _counted(p: Problem) -> tuple[int, int, int]:
    """Pairs, queries and keys of one entry of a random mask, counted from its matrix."""
    import torch  # for this mask only: counting the others needs no torch

    from .mask_tensors import CHUNK_PAIRS, mask_matrix

    pairs = queries = 0
    keys = torch.zeros(p.kv_seq_len, dtype=torch.bool)
    size = max(1, CHUNK_PAIRS // p.kv_seq_len)
    for first in range(0, p.seq_len, size):
        matrix = mask_matrix(p, torch.arange(first, min(p.seq_len, first + size)))
        assert matrix is not None
        pairs += int(matrix.count_nonzero())
        queries += int(matrix[0].any(-1).count_nonzero())
        keys |= matrix[0].any(0)
    return pairs, queries, int(keys.count_nonzero())


def _sum_of_range(first: int, last: int) -> int:
    """first + ... + last, 0 if the range is empty."""
    return (first + last) * (last - first + 1) // 2 if last >= first else 0


def _capped_sum(first: int, last: int, cap: int) -> int:
    """min(first, cap) + ... + min(last, cap)."""
    growing = _sum_of_range(first, min(last, cap))
    return growing + cap * max(0, last - max(first - 1, cap))


def _sum_of_quotients(end: int, divisor: int) -> int:
    """0 // divisor + ... + (end - 1) // divisor."""
    whole, rest = divmod(end, divisor)
    return divisor * _sum_of_range(1, whole - 1) + rest * whole
