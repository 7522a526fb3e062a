"""torch's scaled_dot_product_attention as a problem needs it: which kernel it would run, why it
refuses others, and the call.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import attention
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as sdpa

from ..backend import TORCH_DTYPE, Attend
from ..masks import is_causal, needs_matrix
from ..problem import Problem
from .mask_tensors import computed_rows, mask_matrix, materialized_mask

KERNELS = {
    "math": SDPBackend.MATH,
    "flash": SDPBackend.FLASH_ATTENTION,
    "flash3": SDPBackend.FLASH_ATTENTION,
    "flash4": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}

NEWER = {"flash3": ("FA3", "flash-attn-3", (9,)), "flash4": ("FA4", "flash-attn-4", (9, 10))}
"""What torch can put in the place of its own flash kernel: its name there, the package that brings
it, and the major numbers of its GPUs' compute capabilities (torch/nn/attention/_fa3.py, _fa4.py).
"""


@contextmanager
def pinned(kernel: str) -> Iterator[None]:
    """Torch may use this kernel alone meanwhile. Raises what importing its package raises."""
    with sdpa_kernel([KERNELS[kernel]]):
        before, wanted = attention.current_flash_attention_impl(), NEWER.get(kernel, (None,))[0]
        if wanted in (None, before):
            yield
            return
        try:
            attention.activate_flash_attention_impl(wanted)
            yield
        finally:
            attention.restore_flash_attention_impl()
            if before is not None:
                attention.activate_flash_attention_impl(before)


def refusal(problem: Problem, device: torch.device, kernel: str) -> str | None:
    """Torch's own reason for not running the kernel; None if it would run it."""
    caught: list[warnings.WarningMessage] = []
    reasons = []
    try:
        with pinned(kernel), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if would_run(problem, device, kernel):
                return None
    except (ImportError, RuntimeError) as error:  # torch raises it if no enabled kernel fits
        reasons = [str(error)]
    lines = [str(warning.message).split(" (Triggered internally")[0].strip() for warning in caught]
    # Torch goes through all kernels. A line that ends in a colon names the next one; those that we
    # disabled say only that.
    lines = [line for line in lines if not line.endswith(":") and "runtime disabled" not in line]
    return f"torch refuses the {kernel} kernel: {' '.join(dict.fromkeys(lines or reasons))}"


def would_run(problem: Problem, device: torch.device, kernel: str) -> bool:
    """Whether torch would take this kernel, of those that are enabled.

    Asks torch with tensors of the true shape that own one row of memory each.
    """
    p = problem

    def shaped(heads: int, length: int, width: int) -> Tensor:
        row = torch.empty(width, dtype=TORCH_DTYPE[p.dtype], device=device)
        tensor = row.as_strided((p.batch, heads, length, width), (0, 0, 0, 1))
        return tensor.requires_grad_(p.backward)

    n_q, n_kv = p.seq_len - p.empty_rows, p.kv_seq_len
    with torch.no_grad():
        q = shaped(p.heads, n_q, p.d_k)
        k, v = shaped(p.kv_heads, n_kv, p.d_k), shaped(p.kv_heads, n_kv, p.d_v)
        mask = None
        flash = KERNELS[kernel] is SDPBackend.FLASH_ATTENTION
        built_in = device.type == "cuda" and flash  # the lower-right triangle
        if needs_matrix(p) and not (built_in and p.mask == "none" and not p.lengths):
            mask = torch.empty(n_kv, dtype=torch.bool, device=device)
            mask = mask.as_strided((p.batch, 1, n_q, n_kv), (0, 0, 0, 1))
    with torch.set_grad_enabled(p.backward):
        grouped = p.kv_heads != p.heads
        choice = torch._fused_sdp_choice(
            q, k, v, mask, 0.0, is_causal(p), scale=p.scale, enable_gqa=grouped
        )
    return int(choice) == KERNELS[kernel].value


def attend(problem: Problem, device: torch.device, variant: str = "") -> Attend:
    """The core of attention by torch, whose kernel is `variant` if it names one."""
    scale, grouped = problem.scale, problem.kv_heads != problem.heads
    if not needs_matrix(problem):
        causal = is_causal(problem)
        return lambda q, k, v: sdpa(q, k, v, is_causal=causal, scale=scale, enable_gqa=grouped)

    if has_lower_right(problem, device, variant):
        # The one kernel with the lower-right triangle built in. torch reaches it through this bias,
        # whose module imports torch's compiler.
        from torch.nn.attention.bias import causal_lower_right

        bias = causal_lower_right(problem.seq_len, problem.kv_seq_len)
        return lambda q, k, v: sdpa(q, k, v, attn_mask=bias, scale=scale, enable_gqa=grouped)

    given = materialized_mask(problem, device)

    def under_mask(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        mask = matrix(problem, q.device) if given is None else given
        if mask.dim() == 3:
            mask = mask[:, None].expand(-1, -1, q.shape[2], -1)  # [batch or 1, 1, n_q, n_kv]
        return sdpa(q, k, v, attn_mask=mask, scale=scale, enable_gqa=grouped)

    return under_mask


def has_lower_right(problem: Problem, device: torch.device, variant: str) -> bool:
    """Whether this runs flash on CUDA, which has the lower-right triangle built in."""
    triangle = problem.mask == "none" and not problem.lengths
    flash = triangle and variant in ("", "flash", *NEWER) and device.type == "cuda"
    return flash and refusal(problem, device, variant or "flash") is None


def matrix(problem: Problem, device: torch.device) -> Tensor:
    """The mask of a problem that needs one as a matrix, [batch or 1, n_q or 1, n_kv]."""
    mask = mask_matrix(problem, computed_rows(problem, device))
    assert mask is not None
    return mask
