"""A strided pattern: tokens whole strides apart attend only to each other.

A stride s makes s dense problems of N/s tokens: N^2/s pairs, N^1.5 for the default s = sqrt(N)
(Child et al. 2019, Sparse Transformer).
"""

import torch
from torch import Tensor

from .backend import Call, Inputs, Weights
from .layer import as_call
from .problem import Problem
from .shared.softmax import attend_in_blocks, pad_tokens, refuse_other_masks

COMPUTES = ("strided",)


def why_not(problem: Problem, device: torch.device) -> str | None:
    return refuse_other_masks("strided", problem)


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    return as_call(problem, inputs, weights, lambda q, k, v: core(q, k, v, problem), fills=True)


def core(q: Tensor, k: Tensor, v: Tensor, problem: Problem) -> Tensor:
    """Class c holds the queries c, c + stride, ... and the keys at and whole strides from them."""
    p, n_q = problem, q.shape[2]
    stride = min(p.window, p.kv_seq_len)  # a longer one also leaves each query its own key only
    shift = -p.causal_offset % stride  # zeros before the keys: the first query starts a stride
    classes = min(stride, n_q)
    rows, keys = -(-n_q // classes), -(-(shift + p.kv_seq_len) // stride)

    def blocked(x: Tensor) -> Tensor:
        padded = pad_tokens(x, shift, keys * stride - shift - p.kv_seq_len)
        by_stride: Tensor = padded.unflatten(2, (keys, stride))
        return by_stride[:, :, :, :classes].transpose(2, 3)

    masked = _masked(p, stride, shift, torch.arange(classes, device=q.device), rows, keys)
    q = pad_tokens(q, 0, rows * classes - n_q).unflatten(2, (rows, classes)).transpose(2, 3)
    o = attend_in_blocks(q, k, v, blocked, masked, p)  # [batch, heads, classes, rows, d_v]
    return o.transpose(2, 3).flatten(2, 3)[:, :, :n_q]


def _masked(p: Problem, stride: int, shift: int, classes: Tensor, rows: int, keys: int) -> Tensor:
    """[classes, rows, keys]: positions outside the keys and, if causal, after the query."""
    key = torch.arange(keys, device=classes.device)
    own = torch.arange(rows, device=classes.device)[:, None] + (p.causal_offset + shift) // stride
    positions = key * stride + classes[:, None] - shift
    outside = (positions < 0) | (positions >= p.kv_seq_len)
    # Every query keeps its own position, even one that only fills up a class.
    masked = outside[:, None] & (key != own)
    return masked.logical_or_(key > own) if p.causal else masked
