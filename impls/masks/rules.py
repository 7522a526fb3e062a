"""The rules by which masks keep pairs, as far as they are numbers and tables: light, for those who
count and do not compute.

    none      all pairs
    padding   a batch of sequences of unequal length: entry b keeps its first 3/4, 4/4, 2/4, 3/4, 3/4, 4/4, ... of the keys
    random    stands for any mask that is given as a matrix: half of all pairs, by a hash of (query, key), and none for every 16th query
    local     keys at most `window` positions away (Beltagy et al. 2020, Longformer)
    strided   keys whole multiples of `window` away (Child et al. 2019, Sparse Transformer, its second head)
    blocks    per block of 64 queries, `window` blocks of 64 keys: its own, and others drawn with a fixed seed (Zaheer et al. 2020, BigBird)

The last three place query i at key i + causal_offset. `causal` takes away what lies after it, from
every kind.
"""

from functools import lru_cache
from random import Random

from ..problem import Problem

PADDED_QUARTERS = (3, 4, 2, 3)
BLOCK = 64


def padded_length(problem: Problem, entry: int) -> int:
    """How many keys this entry of the batch has."""
    return -(-problem.kv_seq_len * PADDED_QUARTERS[entry % len(PADDED_QUARTERS)] // 4)


def block_table(problem: Problem) -> list[list[int]]:
    """For each block of queries, in order of position: the blocks of keys that it sees, filled up
    with -1 to equal lengths.
    """
    p = problem
    first, last = p.causal_offset // BLOCK, (p.causal_offset + p.seq_len - 1) // BLOCK
    key_blocks = -(-p.kv_seq_len // BLOCK)
    table = [
        drawn_blocks(own, own if p.causal else key_blocks, p.window)
        for own in range(first, last + 1)
    ]
    return [blocks + [-1] * (p.window - len(blocks)) for blocks in table]


def drawn_blocks(own: int, others: int, wanted: int) -> list[int]:
    """The own block, and up to `wanted` - 1 of the blocks 0 .. others - 1 (those before it, in a
    causal problem), in ascending order.
    """
    return list(_drawn(own, others, wanted))


@lru_cache(maxsize=1 << 16)
def _drawn(own: int, others: int, wanted: int) -> tuple[int, ...]:
    candidates = others - (own < others)
    if candidates < wanted:
        return tuple(sorted({own, *range(others)}))
    draw = Random(own).random  # the one method whose numbers Python promises to keep
    found = {own}
    while len(found) < wanted:
        found.add(int(draw() * others))
    return tuple(sorted(found))
