"""torch's varlen_attn: FlashAttention over packed sequences, and over pages in place.

Packed sequences are given by where they begin, pages by a block table. CUDA, in half precision;
queries are the last of their sequence, as the kernel aligns the triangle. `one_split` never splits
the keys of a sequence between blocks, so that its bits do not depend on what else is in the batch.
Over pages several queries of a sequence are copied side by side first.
"""

from collections.abc import Iterable, Sequence
from inspect import signature
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from .axes.kv_storage import pages_per_sequence
from .axes.lengths import sequences
from .backend import Call, Inputs, Weights
from .layer import as_call
from .problem import Problem
from .shared.flash_attention import other_corner

VARIANTS = ("one_split",)
COMPUTES = ("local", "lengths", "page")
WIDEST, WIDTH_STEP, PAGE_STEP = 256, 8, 256  # of a head and of pages, in FlashAttention 2


def unavailable(device: torch.device, *, variant: str) -> str | None:
    if device.type != "cuda":
        return f"torch has varlen_attn for CUDA only, not for {device.type}"
    return lacking("num_splits") if variant else None


def lacking(argument: str) -> str | None:
    """That this torch's function has no such argument, as 2.11 has none of the newer ones."""
    from torch.nn.attention.varlen import varlen_attn  # imports torch's compiler

    if argument in signature(varlen_attn).parameters:
        return None
    newer = "pip install 'torch>=2.13'"
    return f"varlen_attn of torch {torch.__version__} has no {argument}: {newer}"


def why_not(problem: Problem, device: torch.device, *, variant: str) -> str | None:
    p = problem
    if bool(p.lengths) == bool(p.page):
        return "needs either lengths or page: it reads packed sequences or pages"
    if p.dtype == "fp32":
        return "varlen_attn takes bf16 and fp16 only, not fp32"
    if p.d_k != p.d_v or p.d_k > WIDEST or p.d_k % WIDTH_STEP:
        return (
            f"heads are {p.d_k} and {p.d_v} wide; varlen_attn needs one width, a multiple of"
            f" {WIDTH_STEP} up to {WIDEST}"
        )
    if p.page % PAGE_STEP:
        return f"pages have {p.page} tokens; FlashAttention 2 needs a multiple of {PAGE_STEP}"
    return other_corner(p) or (lacking("block_table") if p.page else None)


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None, *, variant: str) -> Call:
    from torch.nn.attention.varlen import varlen_attn

    p, reach = problem, problem.window if problem.mask == "local" else -1
    more: dict[str, Any] = {"num_splits": 1} if variant else {}
    given: dict[str, Any] = {"scale": p.scale, "window_size": (reach, 0 if p.causal else reach)}
    if lacking("enable_gqa") is None:  # torch 2.11 never needs it
        given["enable_gqa"] = p.kv_heads != p.heads

    def numbers(of: Iterable[int]) -> Tensor:
        return torch.tensor([*of], dtype=torch.int32, device=inputs.query.device)

    batch: Sequence[tuple[int, int]]  # queries and keys of each sequence
    if p.page:
        given["block_table"] = inputs.more["page_table"]
        given["seqused_k"] = numbers([p.kv_seq_len] * p.batch)
        batch = [(p.seq_len - p.empty_rows, pages_per_sequence(p) * p.page)] * p.batch
    else:
        batch = sequences(p.lengths)
    for side, lengths in zip("qk", zip(*batch, strict=True), strict=True):
        given[f"max_{side}"] = max(lengths)
        given[f"cu_seq_{side}"] = numbers(accumulate(lengths, initial=0))

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))  # [batch, n, heads, width], or of pages
        if not p.page:
            k, v = k[0], v[0]
        o: Any = varlen_attn(q.flatten(0, 1), k, v, **given, **more)  # [tokens, heads, width]
        out: Tensor = o.unflatten(0, (p.batch, -1)).transpose(1, 2)
        return out

    return as_call(problem, inputs, weights, attend, fills=True, facts=more)
