"""A prefix that all sequences share, read once, beside each sequence's own keys.

All queries are rows against the prefix's keys, each sequence reads its own keys, and log-sum-exp
joins the two parts of the softmax. Juravsky et al. 2024, Hydragen (arXiv:2402.05099, sections 3.1
and 3.2); Ye et al. 2024, Cascade Inference (flashinfer.ai/2024/02/02/cascade-inference.html), which
vLLM and FlashInfer call cascade attention. Both parts are torch's flash kernel, the one that
returns log-sum-exp on a CPU and on a GPU, where it was not run yet. It computes the gradients of a
part from the output and the log-sum-exp of the whole (Dao et al. 2022, FlashAttention, algorithm
4).
"""

from math import inf
from typing import Any

import torch
from torch import Tensor

from .backend import Call, Inputs, Weights
from .layer import as_call
from .problem import Problem

COMPUTES = ("prefix",)
WIDEST, WIDTH_STEP = 256, 8  # of a head, in torch's flash kernel for CUDA

Result = tuple[Any, ...]
"""Of the kernel: output, log-sum-exp [batch, heads, n_q], on a GPU also what its backward needs."""


def why_not(problem: Problem, device: torch.device) -> str | None:
    p = problem
    if not p.prefix:
        return "needs prefix: without one the sequences share no keys"
    if p.d_k != p.d_v:
        return f"keys are {p.d_k} and values {p.d_v} wide; torch's flash kernel takes one width"
    if device.type != "cpu" and (p.dtype == "fp32" or p.d_k > WIDEST or p.d_k % WIDTH_STEP):
        return (
            f"heads are {p.d_k} wide in {p.dtype}; torch's flash kernel on a GPU takes bf16 and"
            f" fp16, and multiples of {WIDTH_STEP} up to {WIDEST}"
        )
    return None


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    prefix = inputs.more["prefix_key"], inputs.more["prefix_value"]

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if problem.backward:
            o: Tensor = _Cascade.apply(q, k, v, *prefix, problem)  # type: ignore[no-untyped-call]
            return o
        return forward(q, k, v, *prefix, problem)[0]

    return as_call(problem, inputs, weights, attend, fills=True)


def forward(
    q: Tensor, k: Tensor, v: Tensor, prefix_k: Tensor, prefix_v: Tensor, problem: Problem
) -> tuple[Tensor, Result, Result]:
    """The output [batch, heads, n_q, d_v], and the results of both parts."""
    p = problem
    of_prefix = flash(rows(q, p, shared=True), prefix_k, prefix_v, p.scale)
    of_own = flash(rows(q, p, shared=False), k, v, p.scale, triangle=has_triangle(p))
    return joined(of_prefix, of_own, p).to(q.dtype), of_prefix, of_own


def has_triangle(problem: Problem) -> bool:
    """Whether some query does not see all of its sequence's own keys."""
    return problem.causal and problem.seq_len > 1


def rows(x: Tensor, problem: Problem, *, shared: bool) -> Tensor:
    """[batch, heads, n_q, width] as rows against the prefix's keys if `shared`, [1, kv_heads, batch
    * group * n_q, width]; or against each sequence's own keys, [batch, kv_heads, group * n_q,
    width], as it is if there is a triangle.
    """
    if has_triangle(problem) and not shared:
        return x
    grouped = x.reshape(problem.batch, problem.kv_heads, -1, x.shape[3])
    if not shared:
        return grouped
    return grouped.transpose(0, 1).reshape(1, problem.kv_heads, -1, x.shape[3])


def by_group(x: Tensor, problem: Problem, *, shared: bool) -> Tensor:
    """What `rows` returned as [batch, kv_heads, group, n_q, width]: a view."""
    p, group = problem, problem.heads // problem.kv_heads
    if shared:
        return x.reshape(p.kv_heads, p.batch, group, p.seq_len, -1).transpose(0, 1)
    return x.reshape(p.batch, p.kv_heads, group, p.seq_len, -1)


def joined(of_prefix: Result, of_own: Result, problem: Problem) -> Tensor:
    """The output [batch, heads, n_q, d_v] in fp32, from the results of both parts.

    The parts' shares of a query's weights are a sigmoid each: one less the other has its rounding,
    which is much of a small share.
    """
    p, lse_prefix, lse_own = problem, *log_sum_exps(of_prefix, of_own, problem)
    beyond = lse_prefix - lse_own
    o = beyond.new_empty(*beyond.shape[:4], p.d_v)
    torch.mul(by_group(of_prefix[0], p, shared=True), beyond.sigmoid(), out=o)
    return o.addcmul_(by_group(of_own[0], p, shared=False), beyond.neg_().sigmoid_()).flatten(1, 2)


def log_sum_exps(of_prefix: Result, of_own: Result, problem: Problem) -> tuple[Tensor, Tensor]:
    """Of both parts, [batch, kv_heads, group, n_q, 1], fp32."""
    of_all_rows = by_group(of_prefix[1][..., None], problem, shared=True)
    return of_all_rows, by_group(of_own[1][..., None], problem, shared=False)


def flash(q: Tensor, k: Tensor, v: Tensor, scale: float, *, triangle: bool = False) -> Result:
    """`triangle`: the last query is at the last key, and no query sees later ones."""
    aten = torch.ops.aten
    if q.device.type != "cpu":
        found = aten._scaled_dot_product_flash_attention(q, k, v, 0.0, triangle, scale=scale)
        return tuple(found[:8])
    square, mask = cpu_mask(q, k, triangle=triangle)
    found = aten._scaled_dot_product_flash_attention_for_cpu(
        q, k, v, 0.0, square, attn_mask=mask, scale=scale
    )
    return tuple(found)


def flash_gradients(
    d_o: Tensor, q: Tensor, k: Tensor, v: Tensor, result: Result, scale: float, *, triangle: bool
) -> list[Tensor]:
    """Of q, k and v; `result` has the output and the log-sum-exp over all keys."""
    aten, (o, lse, *kept) = torch.ops.aten, result
    if kept:
        found = aten._scaled_dot_product_flash_attention_backward(
            d_o, q, k, v, o, lse, *kept[:4], 0.0, triangle, *kept[4:], scale=scale
        )
    else:
        square, mask = cpu_mask(q, k, triangle=triangle)
        found = aten._scaled_dot_product_flash_attention_for_cpu_backward(
            d_o, q, k, v, o, lse, 0.0, square, attn_mask=mask, scale=scale
        )
    return list(found)


def cpu_mask(q: Tensor, k: Tensor, *, triangle: bool) -> tuple[bool, Tensor | None]:
    """The kernel's argument is_causal, which counts from the top left, and a mask if that is wrong,
    to be added to scores: [n_q, n_kv] of the sequence's own keys.
    """
    n_q, n_kv = q.shape[2], k.shape[2]
    if not triangle or n_q == n_kv:
        return triangle, None
    return False, q.new_full((n_q, n_kv), -inf).triu_(n_kv - n_q + 1)


class _Cascade(torch.autograd.Function):
    """With gradients of q, of each sequence's keys and values, and of the prefix's."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, prefix_k: Tensor, prefix_v: Tensor, p: Problem
    ) -> Tensor:
        o, of_prefix, of_own = forward(q, k, v, prefix_k, prefix_v, p)
        lse = torch.logaddexp(*log_sum_exps(of_prefix, of_own, p)).flatten(1, 2)
        ctx.save_for_backward(q, k, v, prefix_k, prefix_v, o, lse)
        ctx.problem, ctx.kept = p, (of_prefix[2:], of_own[2:])
        return o

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, prefix_k, prefix_v, o, lse = ctx.saved_tensors
        p: Problem = ctx.problem

        def part(k: Tensor, v: Tensor, kept: Result, *, shared: bool) -> list[Tensor]:
            d_o, q_rows, o_rows, lse_rows = (
                rows(x, p, shared=shared) for x in (*gradients, q, o, lse)
            )
            result, triangle = (o_rows, lse_rows[..., 0], *kept), has_triangle(p) and not shared
            dq, *others = flash_gradients(d_o, q_rows, k, v, result, p.scale, triangle=triangle)
            return [by_group(dq, p, shared=shared), *others]

        dq_prefix, *of_prefix = part(prefix_k, prefix_v, ctx.kept[0], shared=True)
        dq_own, *of_own = part(k, v, ctx.kept[1], shared=False)
        return (dq_prefix + dq_own).flatten(1, 2), *of_own, *of_prefix, None
