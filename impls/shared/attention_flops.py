"""Floating-point operations of attention's matrix products, forward, over the pairs that a mask
keeps; 2 per multiply-add. Imports no torch.
"""

from typing import Literal, get_args

from ..problem import Problem
from .mask_counts import unmasked_keys, unmasked_pairs, unmasked_queries

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
