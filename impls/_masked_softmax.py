"""Masked softmax(Q K^T / sqrt(d_k)), with softcap and sinks, in plain operations."""

from math import inf

import torch
from torch import Tensor

from .masks.tensors import computed_rows, mask_matrix
from .problem import Problem


def masked_pairs(
    problem: Problem, device: torch.device, matrix: Tensor | None, copies: int = 1
) -> Tensor | None:
    """True where query i must not attend to key j; None if no pair is masked.

    [copies * rows, kv_seq_len] if the mask is the same for the whole batch, else [batch, copies *
    rows or 1, kv_seq_len]; the rows are those of computed_rows. Called inside the timed call: a
    mask takes time and memory like the scores, so both are measured. Only a mask without a rule
    comes from outside, as `matrix` (masks.tensors.materialized_mask).
    """
    ragged = bool(problem.lengths)
    if problem.mask == "none" and not problem.causal and not ragged:
        return None
    rows = computed_rows(problem, device)
    if problem.mask == "none" and not ragged:
        keys = torch.arange(problem.kv_seq_len, device=device)
        return keys > (rows + problem.causal_offset).repeat(copies)[:, None]
    seen = matrix[None] if matrix is not None else mask_matrix(problem, rows)
    assert seen is not None
    masked = seen.logical_not()
    if copies > 1 and masked.shape[1] > 1:
        masked = masked.repeat(1, copies, 1)
    return masked[0] if masked.shape[0] == 1 else masked


def group_rows(q: Tensor, problem: Problem) -> Tensor:
    """[batch, heads, n_q, d_k] as [batch, kv_heads, group * n_q, d_k].

    Heads that share a key/value head become further rows against the same keys: no key is copied.
    """
    p = problem
    return q if p.kv_heads == p.heads else q.reshape(p.batch, p.kv_heads, -1, p.d_k)


def masked_group_rows(
    problem: Problem, device: torch.device, matrix: Tensor | None
) -> Tensor | None:
    """masked_pairs for group_rows: [group * n_q, n_kv] or [batch, 1, group * n_q or 1, n_kv]."""
    masked = masked_pairs(problem, device, matrix, copies=problem.heads // problem.kv_heads)
    return masked if masked is None or masked.dim() == 2 else masked[:, None]


def sink_of_group_rows(sinks: Tensor | None, n_q: int, problem: Problem) -> Tensor | None:
    """The sink of each head [heads] as a column beside group_rows, [kv_heads, group * n_q, 1]."""
    if sinks is None:
        return None
    return sinks[:, None].expand(-1, n_q).reshape(problem.kv_heads, -1, 1)


def softmax_under_mask(s: Tensor, mask: Tensor, problem: Problem) -> Tensor:
    """masked_softmax for a caller's mask (masks/given.py), whose gradient may be wanted."""
    s, cap = s * problem.scale, problem.softcap
    if cap:
        s = torch.tanh(s / cap) * cap
    return torch.softmax(s.masked_fill(~mask, -inf) if mask.dtype == torch.bool else s + mask, -1)


def masked_softmax(s: Tensor, masked: Tensor | None, problem: Problem) -> Tensor:
    """The attention weights of s = Q K^T, [..., n_q, n_kv]; overwrites `s`."""
    return torch.softmax(masked_scores(s, masked, problem), dim=-1)


def masked_scores(s: Tensor, masked: Tensor | None, problem: Problem) -> Tensor:
    """Scaled, capped and masked s = Q K^T, [..., n_q, n_kv]; overwrites `s`.

    In place where autograd needs none of the values that are overwritten, so that at the peak two
    such matrices are alive, scores and weights. The gradient of tanh needs its result: a third one
    is kept for it.
    """
    if problem.softcap:
        s.mul_(problem.scale / problem.softcap).tanh_()
        s = s * problem.softcap if s.requires_grad else s.mul_(problem.softcap)
    else:
        s.mul_(problem.scale)
    return s if masked is None else s.masked_fill_(masked, -inf)


def beside_sink(s: Tensor, sink: Tensor | None) -> Tensor:
    """The scores, [..., n_q, n_kv], with a sink's column [..., n_q, n_kv + 1]; `sink` broadcasts to
    [..., n_q, 1].

    A step of its own, as is the softmax: a caller may keep its arguments alive until a call returns
    (all do while torch.compile watches frames), and would keep the scores beside both copies.
    """
    return s if sink is None else torch.cat((s, sink.expand(*s.shape[:-1], 1)), -1)


def weights_of_keys(s: Tensor, sink: Tensor | None) -> Tensor:
    """The attention weights of what `beside_sink` returned; the sink's own weight is dropped."""
    p = torch.softmax(s, dim=-1)
    return p if sink is None else p[..., :-1]
