"""All heads in one product, then softmax: keeps all heads' N² scores. Not a flash kernel.

Most PyTorch code writes this, by view and transpose. Flash kernels, often called fused, are in
`sdpa`.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from .backend import Call, Inputs, Weights
from .layer import as_call
from .problem import Problem
from .shared.softmax import Softmax, group_rows, masked_group_rows, softmax_of_rows

COMPUTES = ("mask", "mask tensor", "lengths", "softcap", "sinks")


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    softmax = softmax_of_rows(problem, inputs)
    return as_call(problem, inputs, weights, lambda q, k, v: core(q, k, v, softmax), fills=True)


def core(q: Tensor, k: Tensor, v: Tensor, make_softmax: Callable[[], Softmax]) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)) V of all heads at once; q [batch, heads, n_q, d_k], k and v
    [batch, kv_heads, n_kv, d_k or d_v].
    """
    softmax = make_softmax()
    # [batch, kv_heads, group * n_q, n_kv]
    p = softmax.weights(softmax.scores(group_rows(q, k.shape[1]) @ k.mT))
    del softmax  # and its mask
    o = p @ v  # [batch, kv_heads, group * n_q, d_v]
    return o.view(*q.shape[:3], v.shape[3])  # [batch, heads, n_q, d_v]


def build_mask(problem: Problem, device: torch.device) -> Tensor | None:
    return masked_group_rows(problem, device)
