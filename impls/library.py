"""flash-attn 2, 3 and 4, flashinfer, xformers and Meta's tlx, if installed; not yet run on a GPU.

Each by its own function, tested with fakes of their signatures. q, k and v are [batch, n, heads,
width] there, [batch, heads, n, width] in tlx. All but xformers and tlx count the causal triangle
and a window from the bottom right.
"""

from collections.abc import Callable
from importlib import import_module
from inspect import signature
from typing import Any

import torch
from torch import Tensor

from .backend import Attend, Call, Inputs, Weights
from .layer import as_call
from .problem import Problem
from .shared.flash_attention import missing, other_corner

VARIANTS = (
    "flash_attn_2",
    "flash_attn_3",
    "flash_attn_4",
    "flashinfer",
    "xformers",
    "tlx_hopper",
    "tlx_blackwell",
)
COMPUTES = ("local", "softcap")
COMPILES = True  # in the first call, flash_attn_4 and tlx; all import much
TUTORIALS = "triton.language.extra.tlx.tutorials"
PACKAGES = {
    # the distribution, since those of flash-attn share a module; the module and its function
    "flash_attn_2": ("flash-attn", "flash_attn", "flash_attn_func"),
    "flash_attn_3": ("flash-attn-3", "flash_attn_interface", "flash_attn_func"),
    "flash_attn_4": ("flash-attn-4", "flash_attn.cute", "flash_attn_func"),
    "flashinfer": ("flashinfer-python", "flashinfer", "single_prefill_with_kv_cache"),
    "xformers": ("xformers", "xformers.ops", "memory_efficient_attention"),
    # fbtriton's module is triton, which it takes the place of
    "tlx_hopper": (
        "fbtriton",
        f"{TUTORIALS}.hopper_fa_ws_pipelined_pingpong_persistent",
        "attention",
    ),
    "tlx_blackwell": ("fbtriton", f"{TUTORIALS}.blackwell_fa_ws_pipelined_persistent", "attention"),
}
TLX = {"tlx_hopper": (9, 128), "tlx_blackwell": (10, 256)}
"""Major number of the GPU's compute capability, and queries of a block: rows that do not fill it
would be written into the next head.
"""
TLX_WIDTHS = (16, 32, 64, 128, 256)


def unavailable(device: torch.device, *, variant: str) -> str | None:
    if variant not in PACKAGES:
        return f"wanted one of {', '.join(f'library:{name}' for name in VARIANTS)}"
    majors = TLX[variant][:1] if variant in TLX else ()
    return missing(PACKAGES[variant][0], device, variant, majors)


def why_not(problem: Problem, device: torch.device, *, variant: str) -> str | None:
    p = problem
    if p.dtype == "fp32" and variant != "xformers":
        return f"{variant} takes bf16 and fp16 only, not fp32"
    if p.d_k != p.d_v:
        return f"keys are {p.d_k} and values {p.d_v} wide; wanted one width"
    if variant == "xformers" and (p.softcap or p.mask == "local"):
        return "xformers computes neither a softcap nor a window here"
    if variant == "flashinfer":
        if p.batch > 1 or p.backward:
            return "flashinfer's prefill takes one sequence, forward only"
        if p.mask == "local" and not p.causal:
            return "flashinfer's window looks left only; set causal"
    if variant in TLX:
        block, is_causal = TLX[variant][1], variant == "tlx_hopper" and p.causal
        if is_causal or p.backward or p.softcap or p.mask != "none":
            return f"{variant} computes plain attention, forward; causal on Blackwell only"
        if p.seq_len != p.kv_seq_len or p.seq_len % block or p.kv_heads != p.heads:
            return f"{variant} takes as many queries as keys, in {block}s, and no grouped heads"
        if p.d_k not in TLX_WIDTHS:
            return f"heads are {p.d_k} wide; wanted one of {TLX_WIDTHS}"
    return other_corner(p)


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None, *, variant: str) -> Call:
    _, module, name = PACKAGES[variant]
    attend = MAKERS.get(variant, _flash_attn)(problem, getattr(import_module(module), name))
    return as_call(problem, inputs, weights, attend, fills=True)


def _by_token(function: Callable[[Tensor, Tensor, Tensor], Any]) -> Attend:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        o = function(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
        out: Tensor = o[0] if isinstance(o, tuple) else o  # with its log-sum-exp, in some versions
        return out.transpose(1, 2)

    return attend


def _flash_attn(problem: Problem, function: Callable[..., Any]) -> Attend:
    p = problem
    given: dict[str, Any] = {"softmax_scale": p.scale, "causal": p.causal, "softcap": p.softcap}
    if p.mask == "local":
        given["window_size"] = (p.window, 0 if p.causal else p.window)
    return _by_token(lambda q, k, v: function(q, k, v, **given))


def _flashinfer(problem: Problem, function: Callable[..., Any]) -> Attend:
    p = problem
    given: dict[str, Any] = {"causal": p.causal, "sm_scale": p.scale, "kv_layout": "NHD"}
    given |= {"logits_soft_cap": p.softcap or None}
    given |= {"window_left": p.window if p.mask == "local" else -1}
    return _by_token(lambda q, k, v: function(q[0], k[0], v[0], **given)[None])


def _xformers(problem: Problem, function: Callable[..., Any]) -> Attend:
    """Heads that share a key are a dimension of their own: [batch, n, kv_heads, group, width]."""
    p, bias = problem, None
    if p.causal:
        masks = import_module("xformers.ops.fmha.attn_bias")
        bias = masks.LowerTriangularFromBottomRightMask()
    group = p.heads // p.kv_heads

    def grouped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if group == 1:
            out: Tensor = function(q, k, v, attn_bias=bias, scale=p.scale)
            return out
        q = q.unflatten(2, (p.kv_heads, group))
        k, v = (x.unsqueeze(3).expand(-1, -1, -1, group, -1) for x in (k, v))
        shared: Tensor = function(q, k, v, attn_bias=bias, scale=p.scale)
        return shared.flatten(2, 3)

    return _by_token(grouped)


def _tlx(problem: Problem, function: Callable[..., Tensor]) -> Attend:
    """Tensors whose heads lie one after the other; only Blackwell's knows `causal`."""
    p = problem
    more = {"causal": p.causal} if "causal" in signature(function).parameters else {}
    return lambda q, k, v: function(*(x.contiguous() for x in (q, k, v)), p.scale, **more)


MAKERS = {"flashinfer": _flashinfer, "xformers": _xformers, **dict.fromkeys(TLX, _tlx)}
