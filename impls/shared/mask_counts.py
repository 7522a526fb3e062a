"""How many pairs, queries and keys a mask leaves, over the whole batch and for one head.

By formula, where the mask has one. And floating-point operations of attention's matrix products,
forward, over those pairs; 2 per multiply-add. Imports no torch.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Literal, get_args

from ..axes.lengths import counted
from ..masks import MASKS
from ..masks._shared import reach, triangle
from ..problem import Problem

CHUNK_PAIRS = 1 << 22  # of a matrix that are counted at a time


def unmasked_pairs(problem: Problem) -> int:
    """(query, key) pairs that attend."""
    p = problem
    if p.lengths:
        return _of_all(p, unmasked_pairs)
    if p.mask == "none":
        return p.batch * triangle(p, p.kv_seq_len)
    count = MASKS[p.mask].pairs
    return count(p) if count else p.batch * _counted(p)[0]


def unmasked_queries(problem: Problem) -> int:
    """Queries that attend to at least one key."""
    p = problem
    if p.lengths:
        return _of_all(p, unmasked_queries)
    by_formula = p.mask == "none" or MASKS[p.mask].pairs
    return p.batch * (p.seq_len - p.empty_rows if by_formula else _counted(p)[1])


def unmasked_keys(problem: Problem) -> int:
    """Keys that at least one query attends to."""
    p = problem
    if p.lengths:
        return _of_all(p, unmasked_keys)
    mask = MASKS.get(p.mask)
    if mask and not mask.pairs:
        return p.batch * _counted(p)[2]
    return mask.keys(p) if mask and mask.keys else p.batch * reach(p)


def _of_all(p: Problem, count: Callable[[Problem], int]) -> int:
    """Over the sequences of a ragged batch."""
    return sum(times * count(one) for one, times in counted(p))


@lru_cache(maxsize=64)
def _counted(p: Problem) -> tuple[int, int, int]:
    """Pairs, queries and keys of one entry of the batch, counted in the matrix."""
    import torch  # not needed to count by formula

    from .mask_tensors import mask_matrix

    pairs = queries = 0
    keys = torch.zeros(p.kv_seq_len, dtype=torch.bool)
    size = max(1, CHUNK_PAIRS // p.kv_seq_len)
    for first in range(0, p.seq_len, size):
        matrix = mask_matrix(p, torch.arange(first, min(p.seq_len, first + size)), [0])
        assert matrix is not None
        seen = matrix[0].expand(-1, p.kv_seq_len)
        pairs += int(seen.count_nonzero())
        queries += int(seen.any(-1).count_nonzero())
        keys |= seen.any(0)
    return pairs, queries, int(keys.count_nonzero())


Form = Literal["absorbed", "unabsorbed"]
FORMS: tuple[Form, ...] = get_args(Form)


def attention_flops(problem: Problem) -> int:
    """Q K^T and P V, the usual 4 B h N^2 d_k. With a latent cache: of the cheaper form."""
    p = problem
    if p.latent:
        return form_flops(p, cheaper_form(p))
    return 2 * p.heads * unmasked_pairs(p) * (p.d_k + p.d_v)


def least_attention_flops(problem: Problem) -> int:
    """What no order of these products can do without.

    Of a latent cache each pair needs a product as wide as the narrower of key and latent, and of
    value and latent. Projections are left out: mixing forms by key could save some of them.
    """
    p = problem
    if not p.latent:
        return attention_flops(p)
    wide = min(p.d_k - p.rope, p.latent) + p.rope + min(p.d_v, p.latent)
    return 2 * p.heads * unmasked_pairs(p) * wide


def cheaper_form(problem: Problem, variant: str = "") -> Form:
    """The form that `variant` names, or the one with fewer FLOPs."""
    forms = (form for form in FORMS if variant in ("", form))
    return min(forms, key=lambda form: form_flops(problem, form))


def form_flops(problem: Problem, form: Form) -> int:
    """Of a latent cache (DeepSeek-V2, arXiv:2405.04434, section 2.1.2 and appendix C).

    "unabsorbed": every latent vector that a query sees is projected to each head's key and value,
    once per call. "absorbed": W_UK is applied to the queries and W_UV to the outputs instead, and
    pairs are as wide as the latent.
    """
    p = problem
    projecting = 2 * p.heads * (p.d_k - p.rope + p.d_v) * p.latent  # a token or a query
    pairs = 2 * p.heads * unmasked_pairs(p)
    if form == "unabsorbed":
        return projecting * unmasked_keys(p) + pairs * (p.d_k + p.d_v)
    return projecting * unmasked_queries(p) + pairs * (2 * p.latent + p.rope)
