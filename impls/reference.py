"""The reference: attention in float64, column by column; and the same formula in the case's dtype.

Tokens are columns, as in textbooks: X is (d, N), Q = Wq X, S = K^T Q / sqrt(d_k), A = softmax over
the keys, which are the rows of S, Y = V A. Head i owns the rows i*d_k .. (i+1)*d_k - 1 of Q.
Everything works on selected queries and in blocks, so that it fits in memory at any N. Scale, masks
and softmax are written here from their definitions; backends share only how keys and values are
stored.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import inf, sqrt
from typing import Any

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


def reference(
    problem: Problem,
    inputs: Inputs,
    weights: Weights | None,
    rows: Tensor,
    entries: Sequence[int] | None = None,
) -> Tensor:
    """The exact output for the queries `rows` (int64): [batch, heads, rows, d_v], in scopes
    "layer" and "block" [batch, rows, d_model]; float64.

    `entries` are the batch entries that `inputs` holds, if not all: padding differs between
    entries. Gradients have the dtype of `inputs` and `weights`; pass float64 copies for unrounded
    ones.
    """
    if isinstance(weights, BlockWeights):
        return _block(problem, inputs, weights, rows, entries)
    problem, inputs = plain(problem, inputs, torch.float64)
    x_q, x_k, x_v = (tensor.mT for tensor in inputs)  # tokens become columns
    x_q = x_q[..., rows].double()
    sinks = inputs.more["sinks"].double() if problem.sinks else None
    if weights is None:
        return _Columns.apply(x_q, x_k, x_v, sinks, rows, problem, entries).mT  # type: ignore[no-untyped-call, no-any-return]
    w, p = weights, problem
    q = _affine(w.w_q, x_q, w.b_q).reshape(p.batch, p.heads, p.d_k, -1)  # [batch, heads, d_k, rows]
    k = _affine(w.w_k, x_k, w.b_k).reshape(p.batch, p.kv_heads, p.d_k, -1)
    v = _affine(w.w_v, x_v, w.b_v).reshape(p.batch, p.kv_heads, p.d_v, -1)
    y: Tensor = _Columns.apply(q, k, v, sinks, rows, p, entries)  # type: ignore[no-untyped-call]
    return _affine(w.w_o, y.flatten(1, 2), w.b_o).mT  # from y [batch, heads, d_v, rows]


def same_dtype_reference(
    problem: Problem,
    inputs: Inputs,
    weights: Weights | None,
    rows: Tensor,
    entries: Sequence[int] | None = None,
) -> Tensor:
    """The textbook formula with every intermediate in the case's dtype, head by head.

    Its error is the one that rounding explains. Shapes and `entries` as in `reference`.
    Differentiable by autograd; the scores of one batch entry and head are alive at a time.
    """
    if isinstance(weights, BlockWeights):
        return _same_dtype_block(problem, inputs, weights, rows, entries)
    p, inputs = plain(problem, inputs, inputs.query.dtype)
    group = p.heads // p.kv_heads
    x_q = inputs.query[..., rows, :]
    if weights is None:
        q, k, v = x_q.unbind(1), inputs.key.unbind(1), inputs.value.unbind(1)
    else:
        w = weights
        q = _projected(x_q, w.w_q, w.b_q, p.d_k)
        k = _projected(inputs.key, w.w_k, w.b_k, p.d_k)
        v = _projected(inputs.value, w.w_v, w.b_v, p.d_v)
    entries = range(x_q.shape[0]) if entries is None else entries
    masked = [_masked(p, rows, entry) for entry in entries]
    sinks = inputs.more["sinks"] if p.sinks else [None] * p.heads
    heads = [
        _one_head(p, q[i], k[i // group], v[i // group], masked, sinks[i]) for i in range(p.heads)
    ]
    if weights is None:
        return torch.stack(heads, 1)
    return linear(torch.cat(heads, -1), weights.w_o, weights.b_o)


def absorbed_reference(
    problem: Problem,
    inputs: Inputs,
    weights: Weights | None,
    rows: Tensor,
    entries: Sequence[int] | None = None,
) -> Tensor:
    """same_dtype_reference of a latent cache in the other order of products (attention_flops.py):
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


def _masked(p: Problem, rows: Tensor, entry: int) -> Tensor | None:
    """[rows or 1, N], True for masked pairs of these queries in one entry of the batch."""
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
    return seen.logical_not()


def _first_position(p: Problem) -> int:
    """The key at which the first query stands."""
    return p.kv_seq_len - p.seq_len if p.causal_align == "bottom_right" else 0


def _scale(p: Problem) -> float:
    """1/sqrt(d_k) (Vaswani et al. 2017, section 3.2.1)."""
    return 1 / sqrt(p.d_k)


def _block(
    problem: Problem, inputs: Inputs, w: BlockWeights, rows: Tensor, entries: Sequence[int] | None
) -> Tensor:
    """y = x + MultiHead(LayerNorm(x)), then y + W_down GELU(W_up LayerNorm(y)); float64."""
    x = inputs.query.double()
    n = _norm(x, w.gain_1, w.shift_1)
    normed = replace(inputs, query=n, key=n, value=n)
    y = x[:, rows] + reference(problem, normed, _of_layer(w), rows, entries)
    hidden = _norm(y, w.gain_2, w.shift_2) @ w.w_up.double().mT + w.b_up.double()
    active = hidden * (1 + torch.erf(hidden / sqrt(2))) / 2  # GELU
    return y + active @ w.w_down.double().mT + w.b_down.double()


def _same_dtype_block(
    problem: Problem, inputs: Inputs, w: BlockWeights, rows: Tensor, entries: Sequence[int] | None
) -> Tensor:
    x, shape = inputs.query, inputs.query.shape[-1:]
    n = layer_norm(x, shape, w.gain_1, w.shift_1)
    normed = replace(inputs, query=n, key=n, value=n)
    o = same_dtype_reference(problem, normed, _of_layer(w), rows, entries)
    y = x[:, rows] + o
    hidden = linear(layer_norm(y, shape, w.gain_2, w.shift_2), w.w_up, w.b_up)
    return y + linear(gelu(hidden), w.w_down, w.b_down)


def _of_layer(weights: BlockWeights) -> Weights:
    return Weights(**{name: getattr(weights, name) for name in Weights.__dataclass_fields__})


def _norm(x: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
    """Layer normalization over the last axis (Ba et al. 2016, arXiv:1607.06450)."""
    centred = x - x.mean(-1, keepdim=True)
    scaled = centred / (centred.square().mean(-1, keepdim=True) + NORM_EPSILON).sqrt()
    return scaled * gain.double() + shift.double()


def _affine(weight: Tensor, x: Tensor, bias: Tensor) -> Tensor:
    return weight.double() @ x.double() + bias.double()[:, None]


def _scores(q: Tensor, k: Tensor, problem: Problem) -> Tensor:
    """S^T = Q^T K / sqrt(d_k) of one head: [n, N] from q [d_k, n] and k [d_k, N].

    In memory a query's scores lie side by side, and in one place from first to last: that takes
    half the time.
    """
    return (q.mT @ k).mul_(_scale(problem))


def _of_axes(problem: Problem, s: Tensor) -> Tensor:
    """What the problem's axes make of scores, as their files say it: of a softcap, capped ones."""
    for axis in problem.opted_in.values():
        s = axis.scores(problem, s) if axis.scores else s
    return s


def _attention(s: Tensor, masked: Tensor | None, sink: Tensor | None) -> tuple[Tensor, Tensor]:
    """A = softmax(S) of one head, [N, n], from s [n, N], which it overwrites; and the weights that
    the sink took, [n], 0 without one.

    A query that sees no key has a column of zeros.
    """
    if masked is not None:
        s.masked_fill_(masked, -inf)
    if sink is not None:
        largest = torch.maximum(s.amax(-1, keepdim=True), sink)
        s.sub_(largest).exp_()
        of_sink = (sink - largest).exp_()
        total = s.sum(-1, keepdim=True) + of_sink
        return s.div_(total).mT, (of_sink / total)[:, 0]
    a = torch.softmax(s, -1, out=s)
    if masked is not None:
        a.masked_fill_(masked.all(-1, keepdim=True), 0.0)
    return a.mT, a.new_zeros(())


class _Columns(torch.autograd.Function):
    """Y = V A for all heads. Backward recomputes each block of A (Dao et al. 2022, FlashAttention,
    section 3.1).
    """

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        sinks: Tensor | None,
        rows: Tensor,
        problem: Problem,
        entries: Sequence[int] | None,
    ) -> Tensor:
        ctx.save_for_backward(q, k, v, sinks, rows)
        ctx.problem, ctx.entries = problem, range(q.shape[0]) if entries is None else entries
        y = q.new_empty(*q.shape[:2], v.shape[2], q.shape[3])  # [batch, heads, d_v, rows]
        for entry, head, kv_head, part in _blocks(problem, q):
            masked = _masked(problem, rows[part], ctx.entries[entry])
            k_head, v_head = k[entry, kv_head].double(), v[entry, kv_head].double()
            s = _of_axes(problem, _scores(q[entry, head, :, part], k_head, problem))
            a, _ = _attention(s, masked, None if sinks is None else sinks[head])
            y[entry, head, :, part] = (a.mT @ v_head.mT).mT  # V A
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (dy,) = gradients
        q, k, v, sinks, rows = ctx.saved_tensors
        problem: Problem = ctx.problem
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        d_sinks = None if sinks is None else torch.zeros_like(sinks)
        for entry, head, kv_head, part in _blocks(problem, q):
            q_part, dy_part = q[entry, head, :, part], dy[entry, head, :, part]
            masked = _masked(problem, rows[part], ctx.entries[entry])
            scaled = _scores(q_part, k[entry, kv_head], problem)
            with torch.enable_grad():
                s = _of_axes(problem, scaled.requires_grad_())
            own = s.detach() if s is scaled else s.detach().clone()  # autograd may have kept s
            a, of_sink = _attention(own, masked, None if sinks is None else sinks[head])
            # Transposed as they lie in memory: that takes a fifth of the time.
            dv[entry, kv_head].mT.addmm_(a, dy_part.mT)
            da = (dy_part.mT @ v[entry, kv_head]).mT
            mean = (a * da).sum(0)  # dy * y, [n]
            ds = a * (da - mean)
            if s is not scaled:
                ds = torch.autograd.grad(s, scaled, ds.mT)[0].mT
            ds = ds * _scale(problem)
            dq[entry, head, :, part] = (ds.mT @ k[entry, kv_head].mT).mT
            dk[entry, kv_head].mT.addmm_(ds, q_part.mT)
            if d_sinks is not None:  # a further key, whose value is 0
                d_sinks[head] -= (of_sink * mean).sum()
        return dq, dk, dv, d_sinks, None, None, None


def _blocks(problem: Problem, q: Tensor) -> Iterator[tuple[int, int, int, slice]]:
    """(batch entry, head, its key/value head, queries) for each block of scores."""
    size = max(1, BLOCK_SCORES // problem.kv_seq_len)
    for entry in range(q.shape[0]):
        for head in range(problem.heads):
            kv_head = head * problem.kv_heads // problem.heads
            for first in range(0, q.shape[3], size):
                yield entry, head, kv_head, slice(first, first + size)


def _projected(x: Tensor, weight: Tensor, bias: Tensor, width: int) -> tuple[Tensor, ...]:
    """One [batch, n, width] per head."""
    heads = zip(torch.split(weight, width), torch.split(bias, width), strict=True)
    return tuple(linear(x, w, b) for w, b in heads)


def _one_head(
    problem: Problem,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    masked: list[Tensor | None],
    sink: Tensor | None,
) -> Tensor:
    """q [batch, rows, d_k], k and v [batch, N, ...] and `masked` [rows or 1, N] per entry give
    [batch, rows, d_v].
    """

    def attend(masked: Tensor | None, q: Tensor, k: Tensor, v: Tensor, *sink: Tensor) -> Tensor:
        s = _of_axes(problem, q @ k.mT * _scale(problem))  # [rows, N]
        empty = None
        if masked is not None:
            # A softmax over nothing is NaN, also in its gradient: rows without keys keep finite
            # scores, and are then set to zero.
            empty = masked.all(-1, keepdim=True)
            s = s.masked_fill(masked & ~empty, -inf)
        beside = [one.expand(len(q), 1) for one in sink]
        p = torch.cat((s, *beside), -1).softmax(-1)[:, : len(k)]
        return (p if empty is None else p.masked_fill(empty, 0.0)) @ v

    more = () if sink is None else (sink,)
    entries = zip(masked, q, k, v, strict=True)
    return torch.stack([_Recomputed.apply(attend, *entry, *more) for entry in entries])  # type: ignore[no-untyped-call]


class _Recomputed(torch.autograd.Function):
    """`attend(masked, *tensors)`, recomputed for its gradients, so that no scores are kept.

    torch.utils.checkpoint does the same, but its first call imports torch's compiler: a second, and
    100 MiB beside what is measured.
    """

    @staticmethod
    def forward(
        ctx: Any, attend: Callable[..., Tensor], masked: Tensor | None, *tensors: Tensor
    ) -> Tensor:
        ctx.attend, ctx.masked = attend, masked
        ctx.save_for_backward(*tensors)
        return attend(masked, *tensors)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        with torch.enable_grad():
            again = [x.detach().requires_grad_() for x in ctx.saved_tensors]
            return None, None, *torch.autograd.grad(ctx.attend(ctx.masked, *again), again, grad)
