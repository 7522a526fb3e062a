"""torch.nn.functional.scaled_dot_product_attention: bare `sdpa` leaves the kernel to torch,
`sdpa:<kernel>` pins one.

A pinned kernel is the only one that torch may use while `context` is active; if it cannot run,
torch raises instead of falling back.
"""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor
from torch.nn.attention import sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as sdpa

from ._sdpa_kernels import KERNELS, is_causal, needs_matrix, refusal
from .backend import Call, Inputs, Weights
from .layer import as_call
from .masks.tensors import computed_rows, mask_matrix, materialized_mask
from .problem import ALL_MASKS, Problem

MASKS = ALL_MASKS
VARIANTS = ("math", "flash", "efficient", "cudnn")
PINS_KERNEL = True


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None, *, variant: str) -> Call:
    """q [batch, heads, n_q, d_k], k and v [batch, kv_heads, n_kv, ...] go to torch as they are."""
    device, scale, grouped = inputs.query.device, problem.scale, problem.kv_heads != problem.heads
    if not needs_matrix(problem):
        causal = is_causal(problem)

        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return sdpa(q, k, v, is_causal=causal, scale=scale, enable_gqa=grouped)

        return as_call(problem, inputs, weights, attend)

    flash = problem.mask == "none" and variant in ("", "flash") and device.type == "cuda"
    if flash and refusal(problem, device, "flash") is None:
        # The one kernel with the lower-right triangle built in. torch reaches it through this bias,
        # whose module imports torch's compiler.
        from torch.nn.attention.bias import causal_lower_right

        bias = causal_lower_right(problem.seq_len, problem.kv_seq_len)

        def attend_lower_right(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return sdpa(q, k, v, attn_mask=bias, scale=scale, enable_gqa=grouped)

        return as_call(problem, inputs, weights, attend_lower_right)

    materialized = materialized_mask(problem, device)

    def attend_under_mask(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        mask = materialized
        if mask is None:
            mask = mask_matrix(problem, computed_rows(problem, q.device))
        assert mask is not None
        if mask.dim() == 3:
            mask = mask[:, None].expand(-1, -1, q.shape[2], -1)  # [batch or 1, 1, n_q, n_kv]
        return sdpa(q, k, v, attn_mask=mask, scale=scale, enable_gqa=grouped)

    return as_call(problem, inputs, weights, attend_under_mask)


def under_mask(
    problem: Problem, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, *, variant: str
) -> Tensor:
    mask = mask.expand(-1, -1, q.shape[2], -1)
    grouped = problem.kv_heads != problem.heads
    return sdpa(q, k, v, attn_mask=mask, scale=problem.scale, enable_gqa=grouped)


def context(problem: Problem, *, variant: str) -> AbstractContextManager[object]:
    return sdpa_kernel([KERNELS[variant]]) if variant else nullcontext()


def why_not(problem: Problem, device: torch.device, *, variant: str) -> str | None:
    if variant in ("", "math"):
        return None
    if device.type != "cuda" and variant != "flash":
        return f"torch has the {variant} kernel for CUDA only, not for {device.type}"
    return refusal(problem, device, variant)
