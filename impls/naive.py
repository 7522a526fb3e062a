"""The textbook: a loop over heads, each with its own projections; keeps one head's N² scores."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import linear, pad

from ._masked_softmax import (
    beside_sink,
    masked_pairs,
    masked_scores,
    softmax_under_mask,
    weights_of_keys,
)
from .backend import Call, Inputs, Weights
from .layer import as_call, in_scope, split_heads, with_fully_masked_rows
from .masks.tensors import computed_rows, fully_masked_rows, materialized_mask
from .problem import ALL_MASKS, Problem

MASKS = ALL_MASKS
COMPUTES = ("lengths", "softcap", "sinks")


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    device = inputs.query.device
    matrix = materialized_mask(problem, device)
    if weights is None:
        sinks = sink_per_head(problem, inputs)
        return as_call(
            problem, inputs, None, lambda q, k, v: core(q, k, v, matrix, problem, sinks), fills=True
        )
    w, empty = weights, fully_masked_rows(problem, computed_rows(problem, device))
    empty = None if empty is None else empty[:, None]
    return in_scope(inputs, w, lambda inputs: layer(problem, inputs, w, matrix, empty))


def sink_per_head(problem: Problem, inputs: Inputs) -> Sequence[Tensor | None]:
    return inputs.more["sinks"].unbind() if problem.sinks else [None] * problem.heads


def build_mask(problem: Problem, device: torch.device) -> Tensor | None:
    return masked_pairs(problem, device, materialized_mask(problem, device))


def one_head(
    q: Tensor, k: Tensor, v: Tensor, masked: Tensor | None, problem: Problem, sink: Tensor | None
) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)) V of q [batch, n_q, d_k], k and v [batch, n_kv, d_k or d_v].

    A function of its own, so that one head's scores are freed before the next head's are made.
    """
    return head_weights(q, k, masked, problem, sink) @ v  # [batch, n_q, d_v]


def head_weights(
    q: Tensor, k: Tensor, masked: Tensor | None, problem: Problem, sink: Tensor | None
) -> Tensor:
    """[batch, n_q, n_kv]."""
    s = beside_sink(masked_scores(q @ k.mT, masked, problem), sink)
    return weights_of_keys(s, sink)


def core(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    matrix: Tensor | None,
    problem: Problem,
    sinks: Sequence[Tensor | None],
) -> Tensor:
    """One head at a time; q [batch, heads, n_q, d_k], k and v [batch, kv_heads, n_kv, d_k or d_v].

    The gradient of unbind is one stack; that of indexing is a zero-filled tensor per head.
    """
    masked, group = masked_pairs(problem, q.device, matrix), problem.heads // problem.kv_heads
    keys, values = k.unbind(1), v.unbind(1)
    heads = [
        one_head(q_i, keys[i // group], values[i // group], masked, problem, sinks[i])
        for i, q_i in enumerate(q.unbind(1))
    ]
    return torch.stack(heads, 1)  # [batch, heads, n_q, d_v]


def layer(
    problem: Problem, inputs: Inputs, weights: Weights, matrix: Tensor | None, empty: Tensor | None
) -> Tensor:
    """Each head from its own rows of the weights; then heads are concatenated and W_O applied.

    `empty` [rows, 1] is True for fully masked queries after the leading ones; None if there are
    none.
    """
    p, w = problem, weights
    masked, group = masked_pairs(p, inputs.query.device, matrix), p.heads // p.kv_heads
    if p.empty_rows:
        inputs = replace(inputs, query=inputs.query[:, p.empty_rows :])
    queries = per_head(w.w_q, w.b_q, p.d_k)
    keys, values = per_head(w.w_k, w.b_k, p.d_k), per_head(w.w_v, w.b_v, p.d_v)
    sinks, heads = sink_per_head(p, inputs), list[Tensor]()
    for j in range(p.kv_heads):
        own = slice(j * group, (j + 1) * group)
        heads += one_group(inputs, queries[own], keys[j], values[j], masked, p, sinks[own])
    o = torch.cat(heads, -1)  # [batch, n_q, heads * d_v]
    del heads
    if empty is not None:
        o = o.masked_fill(empty, 0.0)
    if p.empty_rows:
        o = pad(o, (0, 0, p.empty_rows, 0))
    return linear(o, w.w_o, w.b_o)  # [batch, seq_len, d_model]


Projection = tuple[Tensor, Tensor]
"""One head's weight [width, d_model] and bias [width]."""


def per_head(weight: Tensor, bias: Tensor, width: int) -> list[Projection]:
    return list(zip(torch.split(weight, width), torch.split(bias, width), strict=True))


def one_group(
    inputs: Inputs,
    queries: list[Projection],
    key: Projection,
    value: Projection,
    masked: Tensor | None,
    problem: Problem,
    sinks: Sequence[Tensor | None],
) -> list[Tensor]:
    """The heads that share one key/value head: a single head if kv_heads == heads."""
    k, v = linear(inputs.key, *key), linear(inputs.value, *value)  # [batch, n_kv, d_k], [.., d_v]
    return [
        one_head(linear(inputs.query, *query), k, v, masked, problem, sink)
        for query, sink in zip(queries, sinks, strict=True)
    ]


def attention_weights(problem: Problem, inputs: Inputs, weights: Weights | None) -> Tensor:
    q, k, _ = inputs if weights is None else split_heads(problem, inputs, weights)
    masked = masked_pairs(problem, q.device, materialized_mask(problem, q.device))
    group, empty = problem.heads // problem.kv_heads, problem.empty_rows
    heads = [
        head_weights(q[:, i, empty:], k[:, i // group], masked, problem, sink)
        for i, sink in enumerate(sink_per_head(problem, inputs))
    ]
    return with_fully_masked_rows(problem, torch.stack(heads, 1))


def under_mask(problem: Problem, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    values, group = v.unbind(1), problem.heads // problem.kv_heads
    heads = _weights_of_heads(problem, q, k, mask)
    return torch.stack([p @ values[i // group] for i, p in enumerate(heads)], 1)


def weights_under_mask(problem: Problem, q: Tensor, k: Tensor, mask: Tensor) -> Tensor:
    return torch.stack(list(_weights_of_heads(problem, q, k, mask)), 1)


def _weights_of_heads(problem: Problem, q: Tensor, k: Tensor, mask: Tensor) -> Iterator[Tensor]:
    """[batch, n_q, n_kv] of each head."""
    keys, group = k.unbind(1), problem.heads // problem.kv_heads
    masks = mask.expand(-1, problem.heads, -1, -1).unbind(1)
    for i, q_i in enumerate(q.unbind(1)):
        yield softmax_under_mask(q_i @ keys[i // group].mT, masks[i], problem)
