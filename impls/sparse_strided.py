"""A strided pattern, computed as such: tokens that are whole strides apart stand together, and
attend to each other alone.

With the stride s that is s dense problems of N/s tokens: N^2/s pairs, N^1.5 at the usual s =
sqrt(N) (Child et al. 2019, Sparse Transformer).
"""

import torch
from torch import Tensor

from ._sparse import padded, wants, within_blocks
from .backend import Call, Inputs, Weights
from .layer import as_call
from .problem import Problem

MASKS = ("strided",)
PLAIN_OPERATIONS = True


def why_not(problem: Problem, device: torch.device) -> str | None:
    return wants("strided", problem)


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    return as_call(problem, inputs, weights, lambda q, k, v: core(q, k, v, problem))


def core(q: Tensor, k: Tensor, v: Tensor, problem: Problem) -> Tensor:
    """Class c holds the queries c, c + stride, ... and the keys at their places and whole strides
    away.
    """
    p, n_q = problem, q.shape[2]
    stride = min(
        p.window, p.kv_seq_len
    )  # a longer one leaves each query its own key, as this one does
    shift = (
        -p.causal_offset % stride
    )  # zeros before the keys, so that the first query stands at the start of a stride
    classes = min(stride, n_q)
    rows, keys = -(-n_q // classes), -(-(shift + p.kv_seq_len) // stride)

    def blocked(x: Tensor) -> Tensor:
        by_stride: Tensor = padded(x, shift, keys * stride - shift - p.kv_seq_len).unflatten(
            2, (keys, stride)
        )
        return by_stride[:, :, :, :classes].transpose(2, 3)

    hidden = _hidden(p, stride, shift, torch.arange(classes, device=q.device), rows, keys)
    by_class = padded(q, 0, rows * classes - n_q).unflatten(2, (rows, classes)).transpose(2, 3)
    return (
        within_blocks(by_class, k, v, blocked, hidden, p).transpose(2, 3).flatten(2, 3)[:, :, :n_q]
    )


def _hidden(p: Problem, stride: int, shift: int, classes: Tensor, rows: int, keys: int) -> Tensor:
    """[classes, rows, keys]: places before the first key and after the last one, and in a causal
    problem what lies after the query.
    """
    key = torch.arange(keys, device=classes.device)
    own = torch.arange(rows, device=classes.device)[:, None] + (p.causal_offset + shift) // stride
    places = key * stride + classes[:, None] - shift
    outside = (places < 0) | (places >= p.kv_seq_len)
    hidden = outside[:, None] & (
        key != own
    )  # every query keeps its own place, even one that fills up a class
    return hidden.logical_or_(key > own) if p.causal else hidden
