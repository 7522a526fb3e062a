"""torch's scaled_dot_product_attention: torch chooses the kernel, `sdpa:<kernel>` pins one.

A pinned kernel is the only one that torch may use while `context` is active; if it cannot run,
torch raises instead of falling back. `flash3` and `flash4` are FlashAttention 3 and 4, of packages
that torch activates in the place of its own flash kernel.
"""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as sdpa

from .backend import Attend, Call, Inputs, Weights
from .layer import as_call
from .masks import needs_matrix
from .problem import Problem
from .shared.flash_attention import missing
from .shared.sdpa_kernels import NEWER, attend, has_lower_right, matrix, pinned, refusal

COMPUTES = ("mask", "mask tensor", "lengths")
VARIANTS = ("math", "flash", "flash3", "flash4", "efficient", "cudnn")
PINS_KERNEL = True


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None, *, variant: str) -> Call:
    """q [batch, heads, n_q, d_k], k and v [batch, kv_heads, n_kv, ...] go to torch as they are."""
    if inputs.mask is not None:
        return as_call(problem, inputs, weights, under_mask(problem, inputs.mask))
    return as_call(
        problem, inputs, weights, attend(problem, inputs.query.device, variant), fills=True
    )


def build_mask(problem: Problem, device: torch.device, *, variant: str) -> Tensor | None:
    if not needs_matrix(problem) or has_lower_right(problem, device, variant):
        return None
    return matrix(problem, device)


def under_mask(problem: Problem, mask: Tensor) -> Attend:
    """Under a caller's mask (shared/mask_tensors.py)."""
    mask, grouped = mask.expand(-1, -1, problem.seq_len, -1), problem.kv_heads != problem.heads
    return lambda q, k, v: sdpa(q, k, v, attn_mask=mask, scale=problem.scale, enable_gqa=grouped)


def context(problem: Problem, *, variant: str) -> AbstractContextManager[object]:
    return pinned(variant) if variant else nullcontext()


def unavailable(device: torch.device, *, variant: str) -> str | None:
    if variant not in NEWER:
        return None
    _, package, majors = NEWER[variant]
    return missing(package, device, variant, majors)


def why_not(problem: Problem, device: torch.device, *, variant: str) -> str | None:
    if variant in ("", "math"):
        return None
    if device.type != "cuda" and variant != "flash":
        return f"torch has the {variant} kernel for CUDA only, not for {device.type}"
    return refusal(problem, device, variant)
