"""Attention as the textbook draws it: a Python loop over heads, with projections of their own, and
one head's scores at a time.
"""

import torch
from torch import Tensor
from torch.nn.functional import linear, pad

from .backend import Call, Inputs, Weights
from .layer import as_call, split_heads, with_blind_rows
from .masks.tensors import blind_rows, given, seen_rows
from .peak_formulas.sizes import Sizes, plain_operations
from .problem import MASKS as EVERY_MASK
from .problem import Problem
from .textbook import hidden_pairs, softmax_weights

MASKS = EVERY_MASK
PLAIN_OPERATIONS = True
SCALE_BYTES = 8  # autograd keeps the factor 1/sqrt(d_k) as a float64 of its own, for each head


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    device = inputs.query.device
    keep = given(problem, device)
    if weights is None:
        return as_call(problem, inputs, None, lambda q, k, v: core(q, k, v, keep, problem))
    w, blind = weights, blind_rows(problem, seen_rows(problem, device))
    return lambda: layer(problem, inputs, w, keep, None if blind is None else blind[:, None])


def core(q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None, problem: Problem) -> Tensor:
    """Heads are taken apart by unbind: its gradient is one stack, where indexing would make a
    zero-filled tensor per head.
    """
    hidden, group = hidden_pairs(problem, q.device, keep), problem.heads // problem.kv_heads
    keys, values = k.unbind(1), v.unbind(1)
    heads = [
        one_head(q_i, keys[i // group], values[i // group], hidden, problem.scale)
        for i, q_i in enumerate(q.unbind(1))
    ]
    return torch.stack(heads, 1)


def one_head(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None, scale: float) -> Tensor:
    """[batch, n, width] each. A function of its own, so that this head's scores and weights are
    freed before the next head's.
    """
    return softmax_weights(q @ k.mT, hidden, scale) @ v


def layer(
    problem: Problem, inputs: Inputs, weights: Weights, keep: Tensor | None, blind: Tensor | None
) -> Tensor:
    """Head i is computed from its own rows of the weights, start to end; then the heads are joined
    and W_O applied.

    `blind` [rows, 1] is True for queries that see no key, None where there are none but leading
    ones.
    """
    p, w = problem, weights
    hidden, group = hidden_pairs(p, inputs.query.device, keep), p.heads // p.kv_heads
    seen = inputs._replace(query=inputs.query[:, p.empty_rows :]) if p.empty_rows else inputs
    queries, keys, values = (
        _per_head(w.w_q, w.b_q, p.d_k),
        _per_head(w.w_k, w.b_k, p.d_k),
        _per_head(w.w_v, w.b_v, p.d_v),
    )
    heads: list[Tensor] = []
    for j in range(p.kv_heads):
        heads += one_group(
            seen, queries[j * group : (j + 1) * group], keys[j], values[j], hidden, p.scale
        )
    joined = torch.cat(heads, -1)  # [batch, n_q, heads * d_v]
    del heads
    if blind is not None:
        joined = joined.masked_fill(blind, 0.0)
    if p.empty_rows:
        joined = pad(joined, (0, 0, p.empty_rows, 0))
    return linear(joined, w.w_o, w.b_o)


Affine = tuple[Tensor, Tensor]
"""One head's projection: weight [width, d_model], bias [width]."""


def _per_head(weight: Tensor, bias: Tensor, width: int) -> list[Affine]:
    return list(zip(torch.split(weight, width), torch.split(bias, width), strict=True))


def one_group(
    inputs: Inputs,
    queries: list[Affine],
    key: Affine,
    value: Affine,
    hidden: Tensor | None,
    scale: float,
) -> list[Tensor]:
    """The heads that share one key/value head; with kv_heads == heads that is one head."""
    k, v = linear(inputs.key, *key), linear(inputs.value, *value)
    return [one_head(linear(inputs.query, *query), k, v, hidden, scale) for query in queries]


def attention_weights(problem: Problem, inputs: Inputs, weights: Weights | None) -> Tensor:
    q, k, _ = inputs if weights is None else split_heads(problem, inputs, weights)
    hidden, group, empty = (
        hidden_pairs(problem, q.device, given(problem, q.device)),
        problem.heads // problem.kv_heads,
        problem.empty_rows,
    )
    heads = [
        softmax_weights(q[:, i, empty:] @ k[:, i // group].mT, hidden, problem.scale)
        for i in range(problem.heads)
    ]
    return with_blind_rows(problem, torch.stack(heads, 1))


def peak_bytes(problem: Problem, device: torch.device, threads: int) -> int | None:
    """Forward: twice one head's scores, and the outputs of the heads before it. With gradients:
    every head's weights are kept.
    """
    if problem.mask != "none" or not plain_operations(problem, device.type):
        return None
    if not problem.backward:
        return _forward_peak(problem)
    return _training_peak(problem) if problem.scope == "core" and not problem.empty_rows else None


def _forward_peak(p: Problem) -> int:
    z = Sizes(p)
    scores, output = z.s // p.heads, z.o // p.heads
    last_head = z.o - output + max(2 * scores, scores + output)
    if p.scope == "core":
        return max(z.making_hidden(), z.hidden + max(last_head, 2 * z.o), z.padded)
    projections = z.q // p.heads + (z.k + z.v) // p.kv_heads
    core = z.hidden + max(projections + last_head, 2 * z.o, z.padded, z.whole_o + z.y)
    return max(z.making_hidden(), core)


def _training_peak(p: Problem) -> int:
    """Backward goes from the last head to the first: each leaves its gradients, and gives its
    weights back unless the graph is kept.
    """
    z = Sizes(p)
    group, scores = p.heads // p.kv_heads, z.s // p.heads
    q, k, v = z.q // p.heads, z.k // p.kv_heads, z.v // p.kv_heads
    graph_kept = p.passes == "backward"  # so that the call can be made again
    kept = z.s + p.heads * SCALE_BYTES + z.hidden if graph_kept else 0
    joining_outputs = 0 if graph_kept else z.hidden + z.s + 2 * z.o
    joining_gradients = z.o + z.q + z.k + z.v + max(z.q, z.k, z.v)
    peak = max(joining_outputs, joining_gradients + kept)
    for done in range(p.heads):
        left = p.heads if graph_kept else p.heads - done
        before = (
            left * (scores + SCALE_BYTES) + z.o + z.hidden + done * q + -(-done // group) * (k + v)
        )
        turn = (
            done % group
            # gradients of shared k and v are summed: into a new tensor the first time, later in place
        )
        weights_gradient = v + scores + (v if turn == 1 else 0)
        scores_gradient = 2 * scores + (0 if turn else v)
        inputs_gradient = q + k + (v if turn == 0 else max(0, k - scores) if turn == 1 else 0)
        inputs_gradient += (
            scores if graph_kept else 0
        )  # the scores' gradient stands beside the weights, not in their place
        peak = max(peak, before + max(weights_gradient, scores_gradient, inputs_gradient))
    return peak
