"""All heads in one product by view and transpose, then plain softmax: keeps all heads' N² scores.

It is what most PyTorch code writes; a flash kernel, which is called fused elsewhere, is `sdpa`.
"""

import torch
from torch import Tensor

from ._masked_softmax import (
    beside_sink,
    group_rows,
    masked_group_rows,
    masked_scores,
    sink_of_group_rows,
    softmax_under_mask,
    weights_of_keys,
)
from .backend import Call, Inputs, Weights
from .layer import as_call, split_heads, with_fully_masked_rows
from .masks.tensors import materialized_mask
from .problem import ALL_MASKS, Problem

MASKS = ALL_MASKS
COMPUTES = ("lengths", "softcap", "sinks")


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    matrix = materialized_mask(problem, inputs.query.device)
    sinks = inputs.more.get("sinks")

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """softmax(Q K^T / sqrt(d_k)) V of all heads at once, so their scores are alive together."""
        p = softmax_qk(q, k, matrix, problem, sinks)  # [batch, kv_heads, group * n_q, n_kv]
        o = p @ v  # [batch, kv_heads, group * n_q, d_v]
        return o.view(*q.shape[:3], problem.d_v)  # [batch, heads, n_q, d_v]

    return as_call(problem, inputs, weights, attend, fills=True)


def build_mask(problem: Problem, device: torch.device) -> Tensor | None:
    return masked_group_rows(problem, device, materialized_mask(problem, device))


def softmax_qk(
    q: Tensor, k: Tensor, matrix: Tensor | None, problem: Problem, sinks: Tensor | None
) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)), [batch, kv_heads, group * n_q, n_kv]; q [batch, heads, n_q, d_k],
    k [batch, kv_heads, n_kv, d_k], sinks [heads].
    """
    masked = masked_group_rows(problem, q.device, matrix)  # [group * n_q, n_kv]
    sink = sink_of_group_rows(sinks, q.shape[2], problem)
    s = beside_sink(masked_scores(group_rows(q, problem) @ k.mT, masked, problem), sink)
    return weights_of_keys(s, sink)


def attention_weights(problem: Problem, inputs: Inputs, weights: Weights | None) -> Tensor:
    q, k, _ = inputs if weights is None else split_heads(problem, inputs, weights)
    matrix = materialized_mask(problem, q.device)
    p = softmax_qk(q[:, :, problem.empty_rows :], k, matrix, problem, inputs.more.get("sinks"))
    return with_fully_masked_rows(
        problem, p.reshape(problem.batch, problem.heads, -1, problem.kv_seq_len)
    )


def under_mask(problem: Problem, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    p = weights_under_mask(problem, q, k, mask)  # [batch, heads, n_q, n_kv]
    o = p.view(*k.shape[:2], -1, problem.kv_seq_len) @ v  # [batch, kv_heads, group * n_q, d_v]
    return o.view(*q.shape[:3], problem.d_v)


def weights_under_mask(problem: Problem, q: Tensor, k: Tensor, mask: Tensor) -> Tensor:
    s = group_rows(q, problem) @ k.mT  # [batch, kv_heads, group * n_q, n_kv]
    return softmax_under_mask(s.view(*q.shape[:3], problem.kv_seq_len), mask, problem)
