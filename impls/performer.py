"""Performer (Choromanski et al. 2021): softmax by random features (FAVOR+).

The softmax kernel is a product of positive orthogonal random features. exp(q k / sqrt(d_k)) is the
mean over random w of f(q) f(k), f(x) = exp(w x' - |x'|^2 / 2) with x' = x / d_k^(1/4). The sum over
keys is then computed once for all queries: O(N * features) in time and bytes. Causal problems carry
this sum from block to block. The vectors w are drawn with a fixed seed before the call and shared
by all heads. Features and their sums are float32 in every dtype, as softmax statistics are in
kernels: in half precision the smallest would vanish.
"""

from math import inf, sqrt

import torch
from torch import Tensor
from torch.nn.functional import pad

from .backend import Call, Inputs, Weights
from .layer import as_call
from .problem import Problem
from .shared.mask_tensors import padded_keys
from .shared.softmax import pad_tokens

EXACTNESS = "approximate"
COMPUTES = ("padding",)
VARIANTS = ("64", "128", "512")
PARAMETERS = {"features": int}
DEFAULT_FEATURES = 256
SEED = 20200930  # of the features, independent of the inputs' seed
ROWS = 128  # of a causal block: its products are as large as those with the carried sum
SMALLEST = 1e-30  # a sum of weights below it has vanished in float32


def why_not(
    problem: Problem, device: torch.device, *, variant: str, features: int | None
) -> str | None:
    if features is not None and (features < 1 or variant):
        return f"features is {features}; wanted 1 or more, and no variant with a number of its own"
    return None


def prepare(
    problem: Problem, inputs: Inputs, weights: Weights | None, *, variant: str, features: int | None
) -> Call:
    count, device = features or int(variant or DEFAULT_FEATURES), inputs.query.device
    w = random_features(count, problem.d_k, device)
    padding = padded_keys(problem, device)
    padding = None if padding is None else padding[:, None, :, None]  # [batch, 1, n_kv, 1]
    attend = lambda q, k, v: core(q, k, v, w, padding, problem)  # noqa: E731
    facts = {"features": count}
    return as_call(problem, inputs, weights, attend, fills=True, facts=facts)


def random_features(count: int, d_k: int, device: torch.device) -> Tensor:
    """The vectors w times d_k^(-1/4), [count, d_k]: normal, and orthogonal in groups of d_k.

    Drawn on the CPU: equal on every device.
    """
    generator = torch.Generator().manual_seed(SEED)
    directions = []
    for _ in range(-(-count // d_k)):
        q, r = torch.linalg.qr(torch.randn(d_k, d_k, generator=generator, dtype=torch.float64))
        directions.append(q.mT * r.diagonal().sign()[:, None])  # signs make directions uniform
    normal = torch.randn(count, d_k, generator=generator, dtype=torch.float64)
    w: Tensor = torch.cat(directions)[:count] * normal.norm(dim=1, keepdim=True) / sqrt(sqrt(d_k))
    return w.to(device, torch.float32)


def core(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, padding: Tensor | None, problem: Problem
) -> Tensor:
    """f(Q) (f(K)^T V), divided by f(Q) (f(K)^T 1): [batch, heads, n_q, d_v]."""
    p, n_q = problem, q.shape[2]
    values = pad(v.float(), (0, 1), value=1.0)  # a column of ones: it yields the sum of the weights
    o = (_causal if p.causal else _all)(q, k, values, w, padding, p)
    o = o.reshape(p.batch, p.heads, -1, p.d_v + 1)[:, :, :n_q]
    output: Tensor = (o[..., :-1] / o[..., -1:].clamp_min(SMALLEST)).to(q.dtype)
    return output


def query_features(q: Tensor, w: Tensor) -> Tensor:
    """f(Q), [..., n, features], at most 1.

    Factors common to all features of a query, such as its own length, cancel in the mean.
    """
    log = q.float() @ w.mT
    return log.sub_(log.detach().amax(-1, keepdim=True)).exp_()


def key_features(k: Tensor, w: Tensor, padding: Tensor | None, scale: float) -> Tensor:
    """f(K), [batch, kv_heads, n_kv, features], at most 1, and 0 for padding.

    Only factors common to all keys cancel.
    """
    x = k.float()
    log = (x @ w.mT).sub_(x.square().sum(-1, keepdim=True).mul_(scale / 2))
    if padding is not None:
        log.masked_fill_(padding, -inf)
    return log.sub_(log.detach().amax((-2, -1), keepdim=True)).exp_()


def _all(
    q: Tensor, k: Tensor, values: Tensor, w: Tensor, padding: Tensor | None, p: Problem
) -> Tensor:
    sums = key_features(k, w, padding, p.scale).mT @ values  # [batch, kv_heads, features, d_v + 1]
    queries: Tensor = query_features(q, w).unflatten(1, (p.kv_heads, -1))
    return queries.flatten(2, 3) @ sums


def _causal(
    q: Tensor, k: Tensor, values: Tensor, w: Tensor, padding: Tensor | None, p: Problem
) -> Tensor:
    """In blocks of rows: each query sees the sum over all earlier blocks, and the keys of its own
    block up to its position. [batch, kv_heads, group, blocks, rows, d_v + 1].
    """
    n_q, first = q.shape[2], max(0, p.causal_offset)  # the first query's own key
    rows = min(ROWS, n_q)
    blocks = -(-n_q // rows)
    keys, after = key_features(k, w, padding, p.scale), first + blocks * rows - p.kv_seq_len
    # keys before the first query: [batch, kv_heads, features, d_v + 1], zero if there are none
    before = keys[:, :, :first].mT @ values[:, :, :first]
    keys, values = (
        pad_tokens(x, -first, after).unflatten(2, (blocks, rows)) for x in (keys, values)
    )
    sums = torch.cat([before[:, :, None], (keys.mT @ values)[:, :, :-1]], 2).cumsum(2)
    queries = pad_tokens(query_features(q, w), 0, blocks * rows - n_q).unflatten(2, (blocks, rows))
    # [batch, kv_heads, blocks, group * rows, features]
    queries = queries.unflatten(1, (p.kv_heads, -1)).transpose(2, 3).flatten(3, 4)
    position = torch.arange(rows, device=q.device)
    weights = (queries @ keys.mT).unflatten(3, (-1, rows))
    weights = weights.masked_fill_(position > position[:, None], 0.0).flatten(3, 4)
    o: Tensor = (weights @ values).add_(queries @ sums).unflatten(3, (-1, rows))
    return o.transpose(2, 3)
