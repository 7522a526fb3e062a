"""What is right, to be read: attention in float64, in the column convention of the textbooks; and
the same formula in the case's dtype.

Tokens are columns: X is (d, N), Q = Wq X, S = K^T Q / sqrt(d_k), A = softmax over the keys, which
are the rows of S, Y = V A. Head i owns the rows i*d_k .. (i+1)*d_k - 1 of Q. All of it works on
chosen queries and block by block, so that it fits in memory at any N.
"""

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from .backend import Inputs, Weights
from .masks.tensors import kept
from .problem import Problem

BLOCK_SCORES = 1 << 22  # scores of one block: 32 MiB in float64


def reference(
    problem: Problem,
    inputs: Inputs,
    weights: Weights | None,
    rows: Tensor,
    entries: Sequence[int] | None = None,
) -> Tensor:
    """The exact output for the queries `rows` (int64): [batch, heads, rows, d_v], in scope "layer"
    [batch, rows, d_model]; float64.

    `entries` says which entries of the batch `inputs` holds, where it does not hold all: a padded
    batch is masked entry by entry. Gradients come back in the dtype of `inputs` and `weights`: give
    float64 copies to have them unrounded.
    """
    x_q, x_k, x_v = (tensor.double().mT for tensor in inputs)  # tokens become columns
    x_q = x_q[..., rows]
    if weights is None:
        return _Columns.apply(x_q, x_k, x_v, rows, problem, entries).mT  # type: ignore[no-untyped-call, no-any-return]
    w, p = weights, problem
    q = _affine(w.w_q, x_q, w.b_q).reshape(p.batch, p.heads, p.d_k, -1)  # [batch, heads, d_k, rows]
    k = _affine(w.w_k, x_k, w.b_k).reshape(p.batch, p.kv_heads, p.d_k, -1)
    v = _affine(w.w_v, x_v, w.b_v).reshape(p.batch, p.kv_heads, p.d_v, -1)
    y: Tensor = _Columns.apply(q, k, v, rows, p, entries)  # type: ignore[no-untyped-call]  # [batch, heads, d_v, rows]
    return _affine(w.w_o, y.flatten(1, 2), w.b_o).mT


def _affine(weight: Tensor, x: Tensor, bias: Tensor) -> Tensor:
    return weight.double() @ x + bias.double()[:, None]


def _attention(q: Tensor, k: Tensor, hidden: Tensor | None, problem: Problem) -> Tensor:
    """A = softmax(K^T Q / sqrt(d_k)) of one head: q [d_k, n], k [d_k, N] give [N, n]. A query that
    sees no key has a column of zeros.
    """
    s = k.mT @ q * problem.scale
    if hidden is None:
        return s.softmax(0)
    return s.masked_fill(hidden.mT, -inf).softmax(0).masked_fill(hidden.all(-1), 0.0)


def _hidden(problem: Problem, rows: Tensor, entry: int) -> Tensor | None:
    """[rows or 1, N]: what these queries of one entry of the batch do not see."""
    seen = kept(problem, rows, [entry])
    return None if seen is None else seen[0].logical_not()


class _Columns(torch.autograd.Function):
    """Y = V A for all heads. Backward computes each block of A anew (Dao et al. 2022,
    FlashAttention, section 3.1).
    """

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        rows: Tensor,
        problem: Problem,
        entries: Sequence[int] | None,
    ) -> Tensor:
        ctx.save_for_backward(q, k, v, rows)
        ctx.problem, ctx.entries = problem, range(q.shape[0]) if entries is None else entries
        y = q.new_empty(*q.shape[:2], v.shape[2], q.shape[3])  # [batch, heads, d_v, rows]
        for entry, head, kv_head, part in _blocks(problem, q):
            hidden = _hidden(problem, rows[part], ctx.entries[entry])
            a = _attention(q[entry, head, :, part], k[entry, kv_head], hidden, problem)
            y[entry, head, :, part] = v[entry, kv_head] @ a
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (dy,) = gradients
        q, k, v, rows = ctx.saved_tensors
        problem: Problem = ctx.problem
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        for entry, head, kv_head, part in _blocks(problem, q):
            q_part, dy_part = q[entry, head, :, part], dy[entry, head, :, part]
            a = _attention(
                q_part, k[entry, kv_head], _hidden(problem, rows[part], ctx.entries[entry]), problem
            )
            dv[entry, kv_head] += dy_part @ a.mT
            da = v[entry, kv_head].mT @ dy_part
            ds = a * (da - (a * da).sum(0)) * problem.scale
            dq[entry, head, :, part] = k[entry, kv_head] @ ds
            dk[entry, kv_head] += q_part @ ds.mT
        return dq, dk, dv, None, None, None


def _blocks(problem: Problem, q: Tensor) -> Iterator[tuple[int, int, int, slice]]:
    """(batch entry, head, its key/value head, queries), one block of scores each."""
    size = max(1, BLOCK_SCORES // problem.kv_seq_len)
    for entry in range(q.shape[0]):
        for head in range(problem.heads):
            for first in range(0, q.shape[3], size):
                yield (
                    entry,
                    head,
                    head * problem.kv_heads // problem.heads,
                    slice(first, first + size),
                )


def honest(
    problem: Problem,
    inputs: Inputs,
    weights: Weights | None,
    rows: Tensor,
    entries: Sequence[int] | None = None,
) -> Tensor:
    """The textbook formula with every intermediate in the case's dtype, head by head: the error
    that nobody can be blamed for.

    Shapes and `entries` as in `reference`. Differentiable by autograd; the scores of one batch
    entry and head are alive at a time (_Recomputed).
    """
    p = problem
    group = p.heads // p.kv_heads
    x_q = inputs.query[..., rows, :]
    if weights is None:
        q, k, v = x_q.unbind(1), inputs.key.unbind(1), inputs.value.unbind(1)
    else:
        w = weights
        q = _projected(x_q, w.w_q, w.b_q, p.d_k)
        k = _projected(inputs.key, w.w_k, w.b_k, p.d_k)
        v = _projected(inputs.value, w.w_v, w.b_v, p.d_v)
    hidden = [
        _hidden(p, rows, entry) for entry in (range(x_q.shape[0]) if entries is None else entries)
    ]
    heads = [
        _honest_head(q[i], k[i // group], v[i // group], hidden, p.scale) for i in range(p.heads)
    ]
    return (
        torch.stack(heads, 1)
        if weights is None
        else linear(torch.cat(heads, -1), weights.w_o, weights.b_o)
    )


def _projected(x: Tensor, weight: Tensor, bias: Tensor, width: int) -> tuple[Tensor, ...]:
    """One [batch, n, width] per head."""
    return tuple(
        linear(x, w, b)
        for w, b in zip(torch.split(weight, width), torch.split(bias, width), strict=True)
    )


def _honest_head(
    q: Tensor, k: Tensor, v: Tensor, hidden: list[Tensor | None], scale: float
) -> Tensor:
    """q [batch, rows, d_k], k and v [batch, N, ...] give [batch, rows, d_v]; `hidden` [rows or 1,
    N] per entry.
    """

    def attend(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
        s = q @ k.mT * scale  # [rows, N]
        if hidden is None:
            return s.softmax(-1) @ v
        # A row without keys stays finite and is then set to zero: softmax over nothing is NaN, in
        # its gradient too.
        blind = hidden.all(-1, keepdim=True)
        p = s.masked_fill(hidden & ~blind, -inf).softmax(-1).masked_fill(blind, 0.0)
        return p @ v

    entries = zip(q, k, v, hidden, strict=True)
    return torch.stack([_Recomputed.apply(attend, *entry) for entry in entries])  # type: ignore[no-untyped-call]


class _Recomputed(torch.autograd.Function):
    """`attend(q, k, v, hidden)`, computed again for its gradients, so that no scores are kept until
    then.

    torch.utils.checkpoint does the same, and imports torch's compiler at its first call: a second,
    and 100 MiB beside what is measured.
    """

    @staticmethod
    def forward(
        ctx: Any,
        attend: Callable[..., Tensor],
        q: Tensor,
        k: Tensor,
        v: Tensor,
        hidden: Tensor | None,
    ) -> Tensor:
        ctx.attend, ctx.hidden = attend, hidden
        ctx.save_for_backward(q, k, v)
        return attend(q, k, v, hidden)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        with torch.enable_grad():
            again = [x.detach().requires_grad_() for x in ctx.saved_tensors]
            return None, *torch.autograd.grad(ctx.attend(*again, ctx.hidden), again, grad), None
