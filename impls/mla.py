"""Multi-head latent attention (DeepSeek-V2) over a latent cache, in plain operations.

Every head's keys and values are products of one latent vector (arXiv:2405.04434, section 2.1).
`mla:unabsorbed` makes them, as in training and prefill, and keeps them for the call. `mla:absorbed`
applies the same projections to queries and outputs, so that all heads read the latent itself, as in
decoding. Bare `mla` takes the form with fewer FLOPs at the problem's lengths; `facts` says which.
Both keep all heads' N² scores.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from .backend import Call, Inputs, Weights
from .layer import as_call
from .problem import Problem
from .shared.kv_tensors import keys_and_values
from .shared.mask_counts import Form, cheaper_form, form_flops
from .shared.softmax import Softmax, softmax_of_rows

COMPUTES = ("mask", "latent", "rope")
VARIANTS = ("absorbed", "unabsorbed")


def why_not(problem: Problem, device: torch.device, *, variant: str) -> str | None:
    return None if problem.latent else "computes attention over a latent cache only; set latent"


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None, *, variant: str) -> Call:
    form, softmax = cheaper_form(problem, variant), softmax_of_rows(problem, inputs)

    def attend(q: Tensor, cache: Tensor, _: Tensor) -> Tensor:
        return FORMS[form](q, cache, inputs.more, softmax(), problem)

    facts = {"form": form, "form_flops": form_flops(problem, form)}
    return as_call(problem, inputs, weights, attend, fills=True, facts=facts)


def unabsorbed(
    q: Tensor, cache: Tensor, weights: Mapping[str, Tensor], softmax: Softmax, problem: Problem
) -> Tensor:
    """q [batch, heads, n_q, d_k], cache [batch, 1, n_kv, latent + rope]."""
    k, v = keys_and_values(problem, cache, weights)
    p = softmax.weights(softmax.scores(q @ k.mT))  # [batch, heads, n_q, n_kv]
    return p @ v  # [batch, heads, n_q, d_v]


def absorbed(
    q: Tensor, cache: Tensor, weights: Mapping[str, Tensor], softmax: Softmax, problem: Problem
) -> Tensor:
    """As unabsorbed. Heads become further rows against the one cache, which is not copied."""
    p, (batch, heads, n_q, _) = problem, q.shape
    w_uk, w_uv = (weights[name].unflatten(0, (heads, -1)) for name in ("w_uk", "w_uv"))
    nope, rope = q.split([p.d_k - p.rope, p.rope], -1)
    q = torch.cat([torch.einsum("bhqn,hnl->bhql", nope, w_uk), rope], -1)
    cache = cache[:, 0]  # [batch, n_kv, latent + rope]
    s = q.flatten(1, 2) @ cache.mT  # [batch, heads * n_q, n_kv]
    s = softmax.weights(softmax.scores(s.view(batch, heads, n_q, -1)))
    o = s.flatten(1, 2) @ cache[..., : p.latent]  # [batch, heads * n_q, latent]
    return torch.einsum("bhql,hvl->bhqv", o.view(batch, heads, n_q, -1), w_uv)


FORMS: dict[Form, Callable[..., Tensor]] = {"absorbed": absorbed, "unabsorbed": unabsorbed}
