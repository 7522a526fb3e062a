"""Attention over stored keys and values (pages, int8, fp8, a shared prefix), by torch's functions.

shared/kv_tensors.py says how they are stored. Bare `kv_cache` gathers, dequantizes and copies all
of them into plain tensors of each sequence, then calls torch's scaled_dot_product_attention.
`kv_cache:blocks` does so for some keys at a time and joins the parts of the softmax (Milakov and
Gimelshein 2018, arXiv:1805.02867): no plain copy is kept, and scales are applied to scores and
weights instead of keys and values.
"""

from math import inf

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as sdpa

from .axes.kv_storage import keys_of_block
from .backend import Call, Inputs, Weights
from .layer import as_call
from .problem import Problem
from .shared.kv_tensors import read_back, scales
from .shared.mask_tensors import materialized_mask
from .shared.softmax import group_rows, masked_group_rows

COMPUTES = ("mask", "page", "kv_dtype", "prefix")
VARIANTS = ("blocks",)


def why_not(problem: Problem, device: torch.device, *, variant: str) -> str | None:
    differentiable = problem.prefix and not variant
    if problem.scope != "core" or (problem.backward and not differentiable):
        return "reads stored keys and values: set scope core and passes forward"
    return None


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None, *, variant: str) -> Call:
    matrix = materialized_mask(problem, inputs.query.device)
    attend = blocks if variant == "blocks" else whole
    return as_call(
        problem, inputs, weights, lambda q, _k, _v: attend(q, inputs, matrix, problem), fills=True
    )


def whole(q: Tensor, inputs: Inputs, matrix: Tensor | None, problem: Problem) -> Tensor:
    """q [batch, heads, n_q, d_k] to [batch, heads, n_q, d_v]."""
    k, v = read_back(problem, inputs, q.dtype)
    p = problem
    rows = group_rows(q, p.kv_heads)  # heads of one key as further queries: no key is copied
    masked = None if sees_all(p) else masked_group_rows(p, q.device, matrix)
    mask = None if masked is None else masked.logical_not_()
    o = sdpa(rows, k, v, attn_mask=mask, scale=p.scale)
    return o.view(*q.shape[:3], p.d_v)


def blocks(q: Tensor, inputs: Inputs, matrix: Tensor | None, problem: Problem) -> Tensor:
    """As `whole`; m_i, l_i and acc as in the paper of FlashAttention."""
    p = problem
    masked = None if sees_all(p) else masked_group_rows(p, q.device, matrix)
    rows = group_rows(q * p.scale, p.kv_heads)  # [batch, kv_heads, group * n_q, d_k]

    def joined(keys: slice, m: Tensor, total: Tensor, acc: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        k, v = read_back(p, inputs, q.dtype, keys=keys, scaled=False)
        k_scale, v_scale = scales(p, inputs, keys)
        s = (rows @ k.mT).float()
        s = s if k_scale is None else s.mul_(k_scale[:, :, None])
        if masked is not None:
            s.masked_fill_(masked[..., keys], -inf)
        highest = torch.maximum(m, s.amax(-1, keepdim=True))
        known = highest.masked_fill(highest == -inf, 0.0)  # of a query that sees none of these keys
        s, alpha = s.sub_(known).exp_(), (m - known).exp_()
        total = total * alpha + s.sum(-1, keepdim=True)
        s = s if v_scale is None else s.mul_(v_scale[:, :, None])
        return highest, total, acc * alpha + (s.to(q.dtype) @ v).float()

    m = rows.new_full((*rows.shape[:3], 1), -inf, dtype=torch.float32)
    total, acc = torch.zeros_like(m), m.new_zeros(*rows.shape[:3], p.d_v)
    for first in range(0, p.kv_seq_len, keys_of_block(p)):
        keys = slice(first, min(first + keys_of_block(p), p.kv_seq_len))
        m, total, acc = joined(keys, m, total, acc)
    return (acc / total).to(q.dtype).view(*q.shape[:3], p.d_v)


def sees_all(problem: Problem) -> bool:
    """Whether no pair is masked, as for one query after all keys."""
    p = problem
    return p.mask == "none" and (not p.causal or p.causal_offset >= p.kv_seq_len - 1)
