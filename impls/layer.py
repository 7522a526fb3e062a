"""The layer round a backend's core: one set of weights for all of them, projections, output
projection.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import linear, pad

from .backend import TORCH_DTYPE, Call, Inputs, Weights
from .masks.tensors import blind_rows, seen_rows
from .problem import Problem

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
"""The core: q [batch, heads, n_q, d_k], k and v [batch, kv_heads, n_kv, d_k or d_v] give [batch,
heads, n_q, d_v].
"""


def make_weights(problem: Problem, device: torch.device, seed: int) -> Weights:
    """Xavier-uniform per projection (Glorot and Bengio 2010), zero bias. Drawn on the CPU in fp32:
    equal for equal seeds.
    """
    generator = torch.Generator().manual_seed(seed)
    dtype = TORCH_DTYPE[problem.dtype]

    def ready(tensor: Tensor) -> Tensor:
        return tensor.to(device, dtype).requires_grad_(problem.backward)

    def matrix(rows: int, columns: int) -> Tensor:
        if device.type == "meta":
            return ready(torch.empty(rows, columns, device=device))
        return ready(torch.nn.init.xavier_uniform_(torch.empty(rows, columns), generator=generator))

    p = problem
    q_width, k_width, v_width, o_width = (
        p.heads * p.d_k,
        p.kv_heads * p.d_k,
        p.kv_heads * p.d_v,
        p.heads * p.d_v,
    )
    return Weights(
        w_q=matrix(q_width, p.d_model),
        b_q=ready(torch.zeros(q_width)),
        w_k=matrix(k_width, p.d_model),
        b_k=ready(torch.zeros(k_width)),
        w_v=matrix(v_width, p.d_model),
        b_v=ready(torch.zeros(v_width)),
        w_o=matrix(p.d_model, o_width),
        b_o=ready(torch.zeros(p.d_model)),
    )


def as_call(problem: Problem, inputs: Inputs, weights: Weights | None, attend: Attend) -> Call:
    """`attend` as the call to time, in either scope. Queries that see no key come out as zeros:
    leading ones are never given to it, and of others (masks.given) its output is thrown away."""
    blind = blind_rows(problem, seen_rows(problem, inputs.query.device))
    core = attend if blind is None else _without_blind_rows(blind[:, None], attend)
    core = core if not problem.empty_rows else _without_empty_rows(problem.empty_rows, core)
    if weights is None:
        q, k, v = inputs
        return lambda: core(q, k, v)
    w = weights
    return lambda: linear(merge_heads(core(*split_heads(problem, inputs, w))), w.w_o, w.b_o)


def split_heads(
    problem: Problem, inputs: Inputs, weights: Weights
) -> tuple[Tensor, Tensor, Tensor]:
    """One projection each for q, k and v; heads are views: [batch, n, heads * width] seen as
    [batch, heads, n, width].
    """
    p, w = problem, weights
    q = linear(inputs.query, w.w_q, w.b_q).view(p.batch, p.seq_len, p.heads, p.d_k).transpose(1, 2)
    k = (
        linear(inputs.key, w.w_k, w.b_k)
        .view(p.batch, p.kv_seq_len, p.kv_heads, p.d_k)
        .transpose(1, 2)
    )
    v = (
        linear(inputs.value, w.w_v, w.b_v)
        .view(p.batch, p.kv_seq_len, p.kv_heads, p.d_v)
        .transpose(1, 2)
    )
    return q, k, v


def merge_heads(o: Tensor) -> Tensor:
    """[batch, heads, n_q, d_v] as [batch, n_q, heads * d_v]: a copy, unless the memory already lies
    so.
    """
    return o.transpose(1, 2).flatten(2)


def _without_empty_rows(empty: int, attend: Attend) -> Attend:
    """Softmax over no key at all is 0/0, forward and backward; so these rows never reach it."""
    return lambda q, k, v: pad(attend(q[:, :, empty:], k, v), (0, 0, empty, 0))


def _without_blind_rows(blind: Tensor, attend: Attend) -> Attend:
    """`blind` [rows, 1]. Their gradients are zero too: none comes back through a row that was
    filled.
    """
    return lambda q, k, v: attend(q, k, v).masked_fill(blind, 0.0)


def with_blind_rows(problem: Problem, rows: Tensor) -> Tensor:
    """Weights or outputs of the queries that a backend was given, [batch, heads, rows, ...], as
    those of all queries: zero where one sees no key."""
    blind = blind_rows(problem, seen_rows(problem, rows.device))
    return pad(
        rows if blind is None else rows.masked_fill(blind[:, None], 0.0),
        (0, 0, problem.empty_rows, 0),
    )
