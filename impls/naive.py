"""The textbook: a loop over heads with own projections; keeps one head's N² scores."""

import torch
from torch import Tensor
from torch.nn.functional import linear

from .backend import Call, Inputs, Weights
from .layer import Rows, as_call, computed_queries, in_scope, with_empty_rows
from .problem import Problem
from .shared.softmax import Softmax, masked_pairs, softmax_per_head

COMPUTES = ("mask", "mask tensor", "lengths", "softcap", "sinks")


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    softmax = softmax_per_head(problem, inputs)
    if weights is None:
        return as_call(problem, inputs, None, lambda q, k, v: core(q, k, v, softmax()), fills=True)
    w, fill = weights, with_empty_rows(problem, inputs.query.device)
    return in_scope(inputs, w, lambda x: layer(problem, x, w, softmax(), fill))


def one_head(q: Tensor, k: Tensor, v: Tensor, softmax: Softmax) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)) V of q [batch, n_q, d_k], k and v [batch, n_kv, d_k or d_v].

    A function of its own, so that one head's scores are freed before the next head's are made.
    """
    p = softmax.weights(softmax.scores(q @ k.mT))  # [batch, n_q, n_kv]
    return p @ v  # [batch, n_q, d_v]


def core(q: Tensor, k: Tensor, v: Tensor, softmax: list[Softmax]) -> Tensor:
    """q [batch, heads, n_q, d_k], k and v [batch, kv_heads, n_kv, d_k or d_v].

    The gradient of unbind is one stack; that of indexing is a zero-filled tensor per head.
    """
    keys, values, group = k.unbind(1), v.unbind(1), q.shape[1] // k.shape[1]
    heads = [
        one_head(q_i, keys[i // group], values[i // group], softmax[i])
        for i, q_i in enumerate(q.unbind(1))
    ]
    return torch.stack(heads, 1)  # [batch, heads, n_q, d_v]


def layer(problem: Problem, x: Inputs, w: Weights, softmax: list[Softmax], fill: Rows) -> Tensor:
    """head_i = Attention(X W_i^Q, X W_i^K, X W_i^V); Concat(head_1, ..., head_h) W^O."""
    p, heads = problem, list[Tensor]()
    w_q, w_k, w_v = w.w_q.split(p.d_k), w.w_k.split(p.d_k), w.w_v.split(p.d_v)
    b_q, b_k, b_v = w.b_q.split(p.d_k), w.b_k.split(p.d_k), w.b_v.split(p.d_v)
    x_q, group = computed_queries(p, x.query), p.heads // p.kv_heads
    for j in range(p.kv_heads):
        k, v = linear(x.key, w_k[j], b_k[j]), linear(x.value, w_v[j], b_v[j])
        for i in range(j * group, (j + 1) * group):
            heads.append(one_head(linear(x_q, w_q[i], b_q[i]), k, v, softmax[i]))
        del k, v
    o = torch.cat(heads, -1)  # [batch, n_q, heads * d_v]
    del heads
    o = fill(o)  # [batch, seq_len, heads * d_v]
    return linear(o, w.w_o, w.b_o)  # [batch, seq_len, d_model]


def build_mask(problem: Problem, device: torch.device) -> Tensor | None:
    return masked_pairs(problem, device)
