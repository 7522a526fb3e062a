"""Peak bytes of `mla`: the scores and weights of all heads, beside what is made of the latent."""

from ..problem import Device, Problem
from ..shared.mask_counts import cheaper_form
from .sizes import Sizes, knows_scores


def peak_bytes(problem: Problem, device: Device, threads: int, *, variant: str) -> int | None:
    """None with gradients, for several lengths, and for absorbed queries that are not small beside
    the scores.
    """
    p = problem
    if p.backward or p.scope != "core" or p.empty_rows or not knows_scores(p, device):
        return None
    core = (_absorbed if cheaper_form(p, variant) == "absorbed" else _unabsorbed)(p)
    z = Sizes(p)
    return None if core is None else max(z.making_mask(), z.mask() + core)


def _unabsorbed(p: Problem) -> int:
    z = Sizes(p)
    token_bytes = p.batch * p.heads * p.kv_seq_len * p.item_bytes
    k, v, without_rope = (token_bytes * width for width in (p.d_k, p.d_v, p.d_k - p.rope))
    # Values lie by token: a batched product copies them unless batch and heads have one stride.
    v_copy = v if p.batch > 1 and p.heads > 1 and p.kv_seq_len > 1 else 0
    return max(without_rope + k, k + v + max(2 * z.s, z.s + v_copy + z.o))


def _absorbed(p: Problem) -> int | None:
    z = Sizes(p)
    row_bytes = p.batch * p.heads * p.seq_len * p.item_bytes
    latent, query = row_bytes * p.latent, row_bytes * (p.latent + p.rope)
    are_small = z.s > 2 * latent + z.q + z.o  # queries and outputs, copied or not
    return query + 2 * z.s if are_small else None
