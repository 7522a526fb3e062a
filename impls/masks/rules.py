"""The kinds of mask, as numbers and tables. Imports no torch.

    none      all pairs
    padding   sequences of unequal length in one batch: entry b has the first 3/4, 4/4, 2/4, 3/4,
              3/4, 4/4, ... of the keys
    random    stands for any mask given as a matrix: half of all pairs, by a hash of (query, key),
              and no key at all for every 16th query
    local     keys at most `window` positions away (Beltagy et al. 2020, Longformer)
    strided   keys at whole multiples of `window` away (Child et al. 2019, Sparse Transformer,
              second head)
    blocks    per block of 64 queries, `window` blocks of 64 keys: the query's own block, and others
              drawn with a fixed seed (Zaheer et al. 2020, BigBird)
    chunked   keys of the query's own chunk, tokens c * `window` .. (c + 1) * `window` - 1 (the
              layers with rotary positions of Llama 4)
    tree      queries are drafted tokens in a tree in which each has `window` children, level by
              level: the keys before them, which are cached, and of theirs those of the query and
              its ancestors (Miao et al. 2023, SpecInfer)

The last five place query i at key i + causal_offset. `causal` removes later keys from every kind.
"""

from collections.abc import Iterator
from functools import lru_cache
from random import Random

from ..problem import Problem

PADDED_QUARTERS = (3, 4, 2, 3)
BLOCK = 64


def is_causal(problem: Problem) -> bool:
    """torch's argument is_causal: the triangle starts at the top left, once empty rows are cut."""
    plain = problem.mask == "none" and not problem.lengths
    return plain and problem.causal and max(problem.causal_offset, 0) == 0


def needs_matrix(problem: Problem) -> bool:
    """Whether torch needs the mask as a matrix.

    It does for every mask but the triangle, and if the triangle starts further right: is_causal
    would then be wrong, unless the first query sees every key anyway.
    """
    if problem.mask != "none" or problem.lengths:
        return True
    return 0 < problem.causal_offset < problem.kv_seq_len - 1


def has_no_rule(problem: Problem) -> bool:
    """Whether the mask is a matrix that a caller makes (masks.tensors.materialized_mask)."""
    return problem.mask == "random"


def padded_length(problem: Problem, entry: int) -> int:
    """The number of keys of this entry of the batch."""
    return -(-problem.kv_seq_len * PADDED_QUARTERS[entry % len(PADDED_QUARTERS)] // 4)


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


def tree_levels(tokens: int, children: int) -> Iterator[int]:
    """How many of the drafted tokens are at each level, from the root; the last may be cut off.

    Token i's parent is token (i - 1) // children.
    """
    size = 1
    while tokens > 0:
        yield min(size, tokens)
        tokens, size = tokens - size, size * children


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
