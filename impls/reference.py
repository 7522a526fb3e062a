"""The reference: attention from its formula, head by head; in float64, and in the case's dtype.

    head_i = softmax(Q_i K_i^T / sqrt(d_k)) V_i;  Y = Concat(head_1, ..., head_h) W_O

(Vaswani et al. 2017, arXiv:1706.03762, section 3.2). Head i owns the rows i*d_k .. (i+1)*d_k - 1 of
W_Q. Everything works on selected queries and in blocks, so that it fits in memory at any N. Scale,
masks and softmax are written here from their definitions; backends share only how keys and values
are stored.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import inf, sqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import gelu, layer_norm, linear

from .axes.lengths import sequences
from .backend import BlockWeights, Inputs, Weights
from .masks import MASKS
from .problem import Problem
from .shared.kv_tensors import plain

NORM_EPSILON = 1e-5  # torch's default
BLOCK_SCORES = 1 << 22  # scores of one block: 32 MiB in float64


class Masked(NamedTuple):
    """Of a block of n queries. A softmax over nothing is NaN, also in its gradient: rows without
    keys keep finite scores, and are then set to zero.
    """

    pairs: Tensor  # [n or 1, N], True for masked pairs, but for rows without keys
    empty: Tensor  # [n or 1, 1], True for rows without keys


def reference(
    problem: Problem,
    inputs: Inputs,
    weights: Weights | None,
    rows: Tensor,
    entries: Sequence[int] | None = None,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """The exact output for the queries `rows` (int64): [batch, heads, rows, d_v], in scopes
    "layer" and "block" [batch, rows, d_model]. `dtype`: of every intermediate.

    `entries` are the batch entries that `inputs` holds, if not all: padding differs between
    entries. Differentiable by autograd; the scores of one block of queries are alive at a time.
    Gradients have the dtype of `inputs` and `weights`; pass float64 copies for unrounded ones.
    """
    if isinstance(weights, BlockWeights):
        return _block(problem, inputs, weights, rows, entries, dtype)
    p, inputs = plain(problem, inputs, dtype)
    x_q, group = inputs.query[..., rows, :], p.heads // p.kv_heads
    if weights is None:
        q, k, v = x_q.unbind(1), inputs.key.unbind(1), inputs.value.unbind(1)
    else:
        w = weights
        q = _projected(x_q.to(dtype), w.w_q, w.b_q, p.d_k)
        k = _projected(inputs.key.to(dtype), w.w_k, w.b_k, p.d_k)
        v = _projected(inputs.value.to(dtype), w.w_v, w.b_v, p.d_v)
    entries = range(x_q.shape[0]) if entries is None else entries
    sinks = [(sink,) for sink in inputs.more["sinks"]] if p.sinks else [()] * p.heads
    size = max(1, BLOCK_SCORES // p.kv_seq_len)
    masks = [[_mask(p, some, entry) for some in rows.split(size)] for entry in entries]
    heads = []
    for i in range(p.heads):
        of_entries = []
        for q_e, k_e, v_e, masks_e in zip(q[i], k[i // group], v[i // group], masks, strict=True):
            blocks = [
                _Recomputed.apply(partial(_attend, p, dtype, mask), block, k_e, v_e, *sinks[i])  # type: ignore[no-untyped-call]
                for block, mask in zip(q_e.split(size), masks_e, strict=True)
            ]
            of_entries.append(torch.cat(blocks))
        heads.append(torch.stack(of_entries))  # [batch, rows, d_v]
    if weights is None:
        return torch.stack(heads, 1)
    return linear(torch.cat(heads, -1), weights.w_o.to(dtype), weights.b_o.to(dtype))


def _projected(x: Tensor, weight: Tensor, bias: Tensor, width: int) -> tuple[Tensor, ...]:
    """One [batch, n, width] per head."""
    heads = zip(weight.to(x.dtype).split(width), bias.to(x.dtype).split(width), strict=True)
    return tuple(linear(x, w, b) for w, b in heads)


def _attend(p: Problem, dtype: torch.dtype, mask: Masked | None, *tensors: Tensor) -> Tensor:
    """q [n, d_k], k [N, d_k], v [N, d_v] of one head, and its sink if it has one, give [n, d_v]."""
    q, k, v, *sink = (x.to(dtype) for x in tensors)
    s = (q @ k.mT).mul_(_scale(p))  # [n, N]
    for axis in p.opted_in.values():
        s = axis.scores(p, s) if axis.scores else s
    if mask is not None:
        s = s.masked_fill_(mask.pairs, -inf)
    if sink:  # a further key, whose value is 0
        s = torch.cat([s, sink[0].expand(len(q), 1)], -1)
    a = torch.softmax(s, -1, out=None if s.requires_grad else s)[:, : len(k)]
    return (a if mask is None else a.masked_fill(mask.empty, 0.0)) @ v


class _Recomputed(torch.autograd.Function):
    """`attend(*tensors)`, recomputed for its gradients, so that no scores are kept.

    torch.utils.checkpoint does the same, but its first call imports torch's compiler: a second, and
    100 MiB beside what is measured.
    """

    @staticmethod
    def forward(ctx: Any, attend: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
        ctx.attend = attend
        ctx.save_for_backward(*tensors)
        return attend(*tensors)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        with torch.enable_grad():
            again = [x.detach().requires_grad_() for x in ctx.saved_tensors]
            return None, *torch.autograd.grad(ctx.attend(*again), again, grad)


def same_dtype_reference(
    problem: Problem,
    inputs: Inputs,
    weights: Weights | None,
    rows: Tensor,
    entries: Sequence[int] | None = None,
) -> Tensor:
    """`reference` with every intermediate in the case's dtype: its error is the one that rounding
    explains.
    """
    return reference(problem, inputs, weights, rows, entries, inputs.query.dtype)


def absorbed_reference(
    problem: Problem,
    inputs: Inputs,
    weights: Weights | None,
    rows: Tensor,
    entries: Sequence[int] | None = None,
) -> Tensor:
    """same_dtype_reference of a latent cache in the other order of products (mask_counts.py):
    its errors are others, and neither order is the wrong one.

    The values' errors are averaged over the keys in one form, and not in the other.
    """
    p = problem
    nope, rope = inputs.query.split([p.d_k - p.rope, p.rope], -1)
    w_uk, w_uv = (inputs.more[name].unflatten(0, (p.heads, -1)) for name in ("w_uk", "w_uv"))
    one = replace(p, latent=0, rope=0, kv_heads=1, d_k=p.latent + p.rope, d_v=p.latent)
    q = torch.cat([torch.einsum("bhqn,hnl->bhql", nope, w_uk), rope], -1) * (
        _scale(p) / _scale(one)
    )
    latent = inputs.value[..., : p.latent]
    o = same_dtype_reference(one, replace(inputs, query=q, value=latent), weights, rows, entries)
    return torch.einsum("bhql,hvl->bhqv", o, w_uv)


def _mask(p: Problem, rows: Tensor, entry: int) -> Masked | None:
    """Of these queries in one entry of the batch; None if they see every key."""
    if p.mask == "none" and not p.causal and not p.lengths:
        return None
    query, key = rows[:, None], torch.arange(p.kv_seq_len, device=rows.device)
    own, seen = query + _first_position(p), torch.ones_like(rows[:1, None], dtype=torch.bool)
    if p.lengths:
        batch = torch.tensor(sequences(p.lengths), device=rows.device)  # [sequences, 2]
        ends_q, ends_k = batch.cumsum(0).unbind(1)
        sequence = (query >= ends_q).sum(-1, keepdim=True)  # of each query
        own = ends_k[sequence] - ends_q[sequence] + query  # the last query is at the last key
        seen = (key < ends_k[sequence]) & (key >= (ends_k - batch[:, 1])[sequence])
    if p.causal:
        seen = seen & (key <= own)
    if p.mask != "none":
        seen = seen & MASKS[p.mask].rule(p, entry, own, key)
    empty = ~seen.any(-1, keepdim=True)
    return Masked(~(seen | empty), empty)


def _first_position(p: Problem) -> int:
    """The key at which the first query stands."""
    return p.kv_seq_len - p.seq_len if p.causal_align == "bottom_right" else 0


def _scale(p: Problem) -> float:
    """1/sqrt(d_k) (Vaswani et al. 2017, section 3.2.1)."""
    return 1 / sqrt(p.d_k)


def _block(
    problem: Problem,
    inputs: Inputs,
    w: BlockWeights,
    rows: Tensor,
    entries: Sequence[int] | None,
    dtype: torch.dtype,
) -> Tensor:
    """y = x + MultiHead(LayerNorm(x)), then y + W_down GELU(W_up LayerNorm(y))."""
    of_block = {name: getattr(w, name).to(dtype) for name in w.__dataclass_fields__}
    layer = Weights(**{name: of_block[name] for name in Weights.__dataclass_fields__})
    x, w = inputs.query.to(dtype), BlockWeights(**of_block)
    n = _norm(x, w.gain_1, w.shift_1)
    normed = replace(inputs, query=n, key=n, value=n)
    y = x[:, rows] + reference(problem, normed, layer, rows, entries, dtype)
    hidden = linear(_norm(y, w.gain_2, w.shift_2), w.w_up, w.b_up)
    return y + linear(_gelu(hidden), w.w_down, w.b_down)


def _norm(x: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
    """Layer normalization over the last axis (Ba et al. 2016, arXiv:1607.06450); in the case's
    dtype torch's, which rounds once.
    """
    if x.dtype != torch.float64:
        return layer_norm(x, x.shape[-1:], gain, shift)
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + NORM_EPSILON).sqrt() * gain + shift


def _gelu(x: Tensor) -> Tensor:
    """x times the normal distribution below x (Hendrycks and Gimpel 2016, arXiv:1606.08415)."""
    return gelu(x) if x.dtype != torch.float64 else x * (1 + torch.erf(x / sqrt(2))) / 2
