"""Attention as most people write it in PyTorch: one projection for all heads, view and transpose,
batched matmul, plain softmax.
"""

import torch
from torch import Tensor

from .backend import Call, Inputs, Weights
from .layer import as_call, split_heads, with_blind_rows
from .masks.tensors import given
from .peak_formulas.sizes import Sizes, plain_operations
from .problem import MASKS as EVERY_MASK
from .problem import Problem
from .textbook import hidden_pairs, softmax_weights

MASKS = EVERY_MASK
PLAIN_OPERATIONS = True
SCALE_BYTES = 8  # autograd keeps the factor 1/sqrt(d_k) as a float64 of its own


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    keep = given(problem, inputs.query.device)
    return as_call(problem, inputs, weights, lambda q, k, v: core(q, k, v, keep, problem))


def core(q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None, problem: Problem) -> Tensor:
    """All heads at once; the scores of all of them are alive together."""
    o = grouped_weights(q, k, keep, problem) @ v
    return o.view(*q.shape[:3], problem.d_v)


def grouped_weights(q: Tensor, k: Tensor, keep: Tensor | None, problem: Problem) -> Tensor:
    """[batch, kv_heads, group * n_q, n_kv]: heads that share keys are further rows against the same
    keys, so that no key is copied.
    """
    group = problem.heads // problem.kv_heads
    hidden = hidden_pairs(problem, q.device, keep, copies=group)
    if hidden is not None and hidden.dim() == 3:
        hidden = hidden[:, None]  # for all heads
    rows = q if group == 1 else q.reshape(problem.batch, problem.kv_heads, -1, problem.d_k)
    s = rows @ k.mT
    del rows  # may be a copy, and the peak is still to come
    return softmax_weights(s, hidden, problem.scale)


def attention_weights(problem: Problem, inputs: Inputs, weights: Weights | None) -> Tensor:
    q, k, _ = inputs if weights is None else split_heads(problem, inputs, weights)
    p = grouped_weights(q[:, :, problem.empty_rows :], k, given(problem, q.device), problem)
    return with_blind_rows(problem, p.view(problem.batch, problem.heads, -1, problem.kv_seq_len))


def peak_bytes(problem: Problem, device: torch.device, threads: int) -> int | None:
    """Forward: twice the scores (scores, weights). With gradients: three times (weights, their
    gradient, the scores' gradient).
    """
    if problem.mask != "none" or not plain_operations(problem, device.type):
        return None
    return _forward_peak(problem) if not problem.backward else _training_peak(problem)


def _forward_peak(p: Problem) -> int:
    z = Sizes(p)
    group = p.heads // p.kv_heads
    mask = z.hidden * group
    # Joining the rows of a group is a copy where they do not lie one after the other.
    joined = group > 1 and z.rows > 1 and (p.scope == "layer" or p.empty_rows > 0)
    q_copy = z.q if joined else z.copied(z.q, p.heads, z.rows)
    first = (
        mask + q_copy + z.copied(z.k, p.kv_heads, p.kv_seq_len) + z.s
    )  # the scores are being computed
    last = z.s + z.copied(z.v, p.kv_heads, p.kv_seq_len) + z.o  # the weights meet the values
    core = max(z.making_hidden(group), first, mask + 2 * z.s, last, z.padded)
    return core if p.scope == "core" else max(z.projected + core, z.after_core)


def _training_peak(p: Problem) -> int | None:
    z = Sizes(p)
    if p.empty_rows:
        return None
    kept = (
        z.o + z.hidden * (p.heads // p.kv_heads) + SCALE_BYTES
    )  # output, mask and factor; beside the weights
    if p.scope == "core":
        weights = (
            kept - z.o + z.s if p.passes == "backward" else 0
        )  # the graph is kept, so that the call can be made again
        return max(kept + z.v + 3 * z.s, z.o + z.v + z.s + z.k + z.q + weights)
    if p.passes == "backward":
        return None
    w_o = (p.d_model * p.heads * p.d_v + p.d_model) * p.item_bytes
    others = z.projected + z.y + w_o
    inputs_and_weights = (
        2 * p.batch * (p.seq_len + p.kv_seq_len) * p.d_model * p.item_bytes + 4 * w_o
    )
    # Where the scores do not dominate, the highest point is elsewhere in the backward pass.
    return kept - z.o + others + 3 * z.s if z.s > others + inputs_and_weights + 2 * z.o else None
