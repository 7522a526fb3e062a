"""Per block of 64 queries, `window` blocks of 64 keys: the query's own block, and others drawn with
a fixed seed (Zaheer et al. 2020, BigBird).
"""

from collections.abc import Sequence
from functools import lru_cache
from random import Random

from ._shared import Problem, Tensor, sum_of_range

PLACE = 5
WINDOW = "blocks of 64 keys per query block"
BLOCK = 64


def default_window(n_kv: int) -> int:
    return 4


def block_table(problem: Problem) -> list[list[int]]:
    """The blocks of keys of each block of queries, in order, padded with -1 to equal length."""
    p = problem
    first, last = p.causal_offset // BLOCK, (p.causal_offset + p.seq_len - 1) // BLOCK
    key_blocks = -(-p.kv_seq_len // BLOCK)
    table = [
        drawn_blocks(own, own if p.causal else key_blocks, p.window)
        for own in range(first, last + 1)
    ]
    return [[*blocks, *[-1] * (p.window - len(blocks))] for blocks in table]


@lru_cache(maxsize=1 << 16)
def drawn_blocks(own: int, others: int, count: int) -> tuple[int, ...]:
    """The own block and up to `count` - 1 of the blocks 0 .. others - 1, in ascending order.

    In a causal problem `others` is the number of blocks before the own one.
    """
    candidates = others - (own < others)
    if candidates < count:
        return tuple(sorted({own, *range(others)}))
    draw = Random(own).random  # the one method whose numbers Python promises to keep
    found = {own}
    while len(found) < count:
        found.add(int(draw() * others))
    return tuple(sorted(found))


def rule(p: Problem, entry: int, own: Tensor, key: Tensor) -> Tensor:
    import torch

    table, first = block_table(p), p.causal_offset // BLOCK
    blocks, place = (own[:, 0] // BLOCK).unique(return_inverse=True)
    chosen = (own.new_tensor(table[block - first]) for block in blocks.tolist())
    return torch.stack([torch.isin(key // BLOCK, some) for some in chosen])[place]


def matrix(p: Problem, rows: Tensor, keys: Tensor, own: Tensor, entries: Sequence[int]) -> Tensor:
    table = rows.new_tensor(block_table(p))  # [blocks of queries, window]
    blocks = table[own[:, 0] // BLOCK - p.causal_offset // BLOCK]  # [rows, window]
    return (blocks[:, :, None] == (keys // BLOCK)[None, None]).any(1)[None]


def pairs(p: Problem) -> int:
    total = 0
    for queries, own, chosen in _rows_of_blocks(p):
        keys = sum(
            min(p.kv_seq_len, (block + 1) * BLOCK) - block * BLOCK
            for block in chosen
            if block != own or not p.causal
        )
        total += len(queries) * keys
        if p.causal:
            total += sum_of_range(queries[0] - own * BLOCK + 1, queries[-1] - own * BLOCK + 1)
    return p.batch * total


def keys(p: Problem) -> int:
    reach: dict[int, int] = {}  # of each block of keys: how many some query sees
    for queries, own, chosen in _rows_of_blocks(p):
        for block in chosen:
            end = min(p.kv_seq_len, (block + 1) * BLOCK)
            if p.causal and block == own:
                end = queries[-1] + 1
            reach[block] = max(reach.get(block, 0), end - block * BLOCK)
    return p.batch * sum(reach.values())


def _rows_of_blocks(p: Problem) -> list[tuple[range, int, list[int]]]:
    """For each block of queries: their positions, its number, and the blocks of keys it sees."""
    first, end = p.causal_offset, p.causal_offset + p.seq_len
    found = []
    for own, chosen in enumerate(block_table(p), first // BLOCK):
        positions = range(max(first, own * BLOCK), min(end, (own + 1) * BLOCK))
        found.append((positions, own, [block for block in chosen if block >= 0]))
    return found
