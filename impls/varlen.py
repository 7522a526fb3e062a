"""torch.nn.attention.varlen.varlen_attn: FlashAttention over packed sequences, by where they begin.

CUDA, in half precision; queries are the last of their sequence, as the kernel aligns the triangle.
"""

import inspect
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from .axes.lengths import sequences, starts
from .backend import Call, Inputs, Weights
from .layer import as_call
from .problem import Problem

MASKS = ("local",)
COMPUTES = ("lengths",)
WIDEST, WIDTH_STEP = 256, 8  # of a head, in FlashAttention 2


def unavailable(device: torch.device) -> str | None:
    if device.type != "cuda":
        return f"torch has varlen_attn for CUDA only, not for {device.type}"
    if find_spec("torch.nn.attention.varlen") is None:
        return f"torch {torch.__version__} has no varlen_attn: pip install 'torch>=2.10'"
    return None


def why_not(problem: Problem, device: torch.device) -> str | None:
    p = problem
    if not p.lengths:
        return "needs lengths: it is for packed sequences"
    if p.dtype == "fp32":
        return "varlen_attn takes bf16 and fp16 only, not fp32"
    if p.d_k != p.d_v or p.d_k > WIDEST or p.d_k % WIDTH_STEP:
        return (
            f"heads are {p.d_k} and {p.d_v} wide; varlen_attn needs one width, a multiple of"
            f" {WIDTH_STEP} up to {WIDEST}"
        )
    return None


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    from torch.nn.attention.varlen import varlen_attn  # the module is not in every torch

    p, device, batch = problem, inputs.query.device, sequences(problem.lengths)
    of_queries, of_keys = (
        torch.tensor(one, dtype=torch.int32, device=device) for one in starts(p.lengths)
    )
    most_queries, most_keys = map(max, zip(*batch, strict=True))
    reach = p.window if p.mask == "local" else -1
    window = (reach, 0 if p.causal else reach)
    grouped: dict[str, Any] = {"enable_gqa": p.kv_heads != p.heads}
    if "enable_gqa" not in inspect.signature(varlen_attn).parameters:  # torch 2.11: never needed
        grouped = {}

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (x[0].transpose(0, 1) for x in (q, k, v))  # [tokens, heads, width]
        o = varlen_attn(
            q,
            k,
            v,
            cu_seq_q=of_queries,
            cu_seq_k=of_keys,
            max_q=most_queries,
            max_k=most_keys,
            scale=p.scale,
            window_size=window,
            **grouped,
        )
        assert isinstance(o, Tensor)  # a pair only if more outputs are requested
        return o.transpose(0, 1)[None]

    return as_call(problem, inputs, weights, attend, fills=True)
