"""Performer (Choromanski et al. 2021): the softmax kernel as a product of positive orthogonal
random features (FAVOR+).

exp(q k / sqrt(d_k)) is the mean over random w of f(q) f(k), f(x) = exp(w x' - |x'|^2 / 2) with x' =
x / d_k^(1/4). Then the sum over keys is taken once for all queries: O(N * features) in time and
bytes. Causal problems carry the sum along from block to block. The vectors w are drawn with a seed
of their own before the call, shared by all heads. Features and their sums are float32 whatever the
dtype, as the statistics of a softmax are in kernels: in half precision the smallest of them would
vanish.
"""

from math import inf, sqrt

import torch
from torch import Tensor
from torch.nn.functional import pad

from ._sparse import padded
from .backend import Call, Inputs, Weights
from .layer import as_call
from .masks.rules import padded_length
from .problem import Problem

EXACTNESS = "approximate"
MASKS = ("padding",)
PLAIN_OPERATIONS = True
VARIANTS = ("64", "128", "512")
USUAL_FEATURES = 256
SEED = 20200930  # of the features, whatever the inputs' seed
ROWS = 128  # of a causal block: its products are as large as those with the carried sum
SMALLEST = 1e-30  # a sum of weights below it has vanished in float32


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None, *, variant: str) -> Call:
    count, device = int(variant or USUAL_FEATURES), inputs.query.device
    w = features(count, problem.d_k, device)
    absent = None
    if problem.mask == "padding":
        lengths = torch.tensor(
            [padded_length(problem, entry) for entry in range(problem.batch)], device=device
        )
        absent = (torch.arange(problem.kv_seq_len, device=device) >= lengths[:, None])[
            :, None, :, None
        ]  # [batch, 1, n_kv, 1]
    call = as_call(problem, inputs, weights, lambda q, k, v: core(q, k, v, w, absent, problem))
    call.facts = {"features": count}  # type: ignore[attr-defined]
    return call


def features(count: int, d_k: int, device: torch.device) -> Tensor:
    """The vectors w times d_k^(-1/4), [count, d_k]: normal, and d_k at a time orthogonal. Drawn on
    the CPU: equal everywhere.
    """
    if device.type == "meta":
        return torch.empty(count, d_k, device=device)
    generator = torch.Generator().manual_seed(SEED)
    directions = []
    for _ in range(-(-count // d_k)):
        q, r = torch.linalg.qr(torch.randn(d_k, d_k, generator=generator, dtype=torch.float64))
        directions.append(
            q.mT * r.diagonal().sign()[:, None]
        )  # with these signs all directions are equally likely
    lengths = torch.randn(count, d_k, generator=generator, dtype=torch.float64).norm(
        dim=1, keepdim=True
    )
    found: Tensor = torch.cat(directions)[:count] * lengths / sqrt(sqrt(d_k))
    return found.to(device, torch.float32)


def core(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, absent: Tensor | None, problem: Problem
) -> Tensor:
    p, n_q = problem, q.shape[2]
    values = pad(
        v.float(), (0, 1), value=1.0
    )  # a column of ones more: its product is the sum of the weights
    found = _causal(q, k, values, w, absent, p) if p.causal else _all(q, k, values, w, absent, p)
    found = found.reshape(p.batch, p.heads, -1, p.d_v + 1)[:, :, :n_q]
    output: Tensor = (found[..., :-1] / found[..., -1:].clamp_min(SMALLEST)).to(q.dtype)
    return output


def of_queries(q: Tensor, w: Tensor) -> Tensor:
    """[..., n, features], at most 1. What a query's features have in common, its own length too,
    falls out of the mean.
    """
    log = q.float() @ w.mT
    return log.sub_(log.detach().amax(-1, keepdim=True)).exp_()


def of_keys(k: Tensor, w: Tensor, absent: Tensor | None, scale: float) -> Tensor:
    """[batch, kv_heads, n_kv, features], at most 1, and 0 for keys that are absent. Only what all
    keys have in common falls out.
    """
    x = k.float()
    log = (x @ w.mT).sub_(x.square().sum(-1, keepdim=True).mul_(scale / 2))
    if absent is not None:
        log.masked_fill_(absent, -inf)
    return log.sub_(log.detach().amax((-2, -1), keepdim=True)).exp_()


def _all(
    q: Tensor, k: Tensor, values: Tensor, w: Tensor, absent: Tensor | None, p: Problem
) -> Tensor:
    carried = of_keys(k, w, absent, p.scale).mT @ values  # [batch, kv_heads, features, d_v + 1]
    queries: Tensor = of_queries(q, w).unflatten(1, (p.kv_heads, -1))
    return queries.flatten(2, 3) @ carried


def _causal(
    q: Tensor, k: Tensor, values: Tensor, w: Tensor, absent: Tensor | None, p: Problem
) -> Tensor:
    """Block by block: each query sees the sum over all blocks before its own, and within its own
    the keys up to its place.
    """
    n_q, first = q.shape[2], max(0, p.causal_offset)  # the key at the first query's place
    rows = min(ROWS, n_q)
    blocks = -(-n_q // rows)
    keys, after = of_keys(k, w, absent, p.scale), first + blocks * rows - p.kv_seq_len
    sums = (
        keys[:, :, :first].mT @ values[:, :, :first]
    )  # [batch, kv_heads, features, d_v + 1], zero where there are no such keys
    keys, values = (padded(x, -first, after).unflatten(2, (blocks, rows)) for x in (keys, values))
    carried = torch.cat([sums[:, :, None], (keys.mT @ values)[:, :, :-1]], 2).cumsum(2)
    queries = (
        padded(of_queries(q, w), 0, blocks * rows - n_q)
        .unflatten(2, (blocks, rows))
        .unflatten(1, (p.kv_heads, -1))
    )
    queries = queries.transpose(2, 3).flatten(
        3, 4
    )  # [batch, kv_heads, blocks, group * rows, features]
    place = torch.arange(rows, device=q.device)
    weights = (
        (queries @ keys.mT)
        .unflatten(3, (-1, rows))
        .masked_fill_(place > place[:, None], 0.0)
        .flatten(3, 4)
    )
    found: Tensor = (weights @ values).add_(queries @ carried).unflatten(3, (-1, rows))
    return found.transpose(2, 3)  # [batch, kv_heads, group, blocks, rows, d_v + 1]
