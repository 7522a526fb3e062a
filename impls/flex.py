"""torch.nn.attention.flex_attention, compiled: one fused kernel, with the causal triangle as a
block mask that skips what is hidden.

The mask's list of blocks is made once, in `prepare`, as its users make it once for all layers; what
is compiled is attention alone.
"""

from contextlib import AbstractContextManager

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from ._inductor import ahead, compiled, keeping_buffers, lacking
from .backend import Call, Inputs, Weights
from .layer import Attend, as_call
from .problem import Problem

COMPILES = True
NARROWEST = 16  # columns that Triton's matrix product needs
BLOCK = 128  # flex_attention's own choice


def unavailable(device: torch.device) -> str | None:
    reason = lacking(device)
    if reason is None and device.type == "cpu" and not torch.cpu._is_avx2_supported():
        return "flex_attention on a CPU needs AVX2"
    return reason


def why_not(problem: Problem, device: torch.device) -> str | None:
    if device.type == "cpu":
        return "flex_attention has no backward pass on a CPU" if problem.backward else None
    width = min(problem.d_k, problem.d_v)
    return (
        f"heads are {width} wide; flex_attention on a GPU needs {NARROWEST} or more"
        if width < NARROWEST
        else None
    )


def context(problem: Problem) -> AbstractContextManager[object]:
    return keeping_buffers(problem)


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    attend = compiled(attend_under(problem, block_mask(problem, inputs.query.device)))
    return ahead(problem, inputs, weights, as_call(problem, inputs, weights, attend))


def attend_under(problem: Problem, mask: BlockMask | None) -> Attend:
    scale, grouped = problem.scale, problem.kv_heads != problem.heads

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        o = flex_attention(q, k, v, block_mask=mask, scale=scale, enable_gqa=grouped)
        assert isinstance(o, Tensor)  # a pair only where more was asked for
        return o

    return attend


def block_mask(problem: Problem, device: torch.device) -> BlockMask | None:
    """What create_block_mask gives for the triangle, worked out by blocks: that function holds all
    n_q * n_kv pairs at once.

    None where every query sees every key. Queries that see none never get here (see layer.py).
    """
    offset = max(problem.causal_offset, 0)
    n_q, n_kv = problem.seq_len - problem.empty_rows, problem.kv_seq_len
    if not problem.causal or offset >= n_kv - 1:
        return None
    first = torch.arange(0, n_q, BLOCK, device=device)[:, None]  # query of each block
    last = (first + BLOCK - 1).clamp(max=n_q - 1)
    keys = torch.arange(0, n_kv, BLOCK, device=device)
    # A block is computed without the mask where its first query sees its last key, and nothing of
    # it lies beyond an end.
    full = (keys + BLOCK - 1 <= (first + offset).clamp(max=n_kv - 1)) & (first + BLOCK <= n_q)
    some = (keys <= last + offset) & ~full
    return BlockMask.from_kv_blocks(
        *listed(some),
        *listed(full),
        BLOCK_SIZE=BLOCK,
        mask_mod=lambda b, h, q, kv: kv <= q + offset,
        seq_lengths=(n_q, n_kv),
    )


def listed(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """How many blocks each row of blocks has, [1, 1, rows], and which, these first, [1, 1, rows,
    columns].
    """
    order = blocks.int().argsort(dim=-1, descending=True, stable=True)
    return blocks.sum(-1, dtype=torch.int32)[None, None], order.int()[None, None]
