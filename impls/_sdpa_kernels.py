"""Which kernel torch's scaled_dot_product_attention would run, and why it refuses others."""

import warnings

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from .backend import TORCH_DTYPE
from .problem import Problem

KERNELS = {
    "math": SDPBackend.MATH,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}


def is_causal(problem: Problem) -> bool:
    """torch's argument is_causal: the triangle starts at the top left, once empty rows are cut."""
    return problem.mask == "none" and problem.causal and max(problem.causal_offset, 0) == 0


def needs_matrix(problem: Problem) -> bool:
    """Whether torch needs the mask as a matrix.

    It does for every mask but the triangle, and if the triangle starts further right: is_causal
    would then be wrong, unless the first query sees every key anyway.
    """
    return problem.mask != "none" or 0 < problem.causal_offset < problem.kv_seq_len - 1


def refusal(problem: Problem, device: torch.device, kernel: str) -> str | None:
    """Torch's own reason for not running the kernel; None if it would run it."""
    with warnings.catch_warnings(record=True) as caught, sdpa_kernel([KERNELS[kernel]]):
        warnings.simplefilter("always")
        reasons = []
        try:
            if would_run(problem, device, kernel):
                return None
        except RuntimeError as error:  # torch raises it if no enabled kernel fits
            reasons = [str(error)]
        lines = [
            str(warning.message).split(" (Triggered internally")[0].strip() for warning in caught
        ]
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
        built_in = device.type == "cuda" and kernel == "flash"  # the lower-right triangle
        if p.mask != "none" or (needs_matrix(p) and not built_in):
            mask = torch.empty(n_kv, dtype=torch.bool, device=device)
            mask = mask.as_strided((p.batch, 1, n_q, n_kv), (0, 0, 0, 1))
    with torch.set_grad_enabled(p.backward):
        grouped = p.kv_heads != p.heads
        choice = torch._fused_sdp_choice(
            q, k, v, mask, 0.0, is_causal(p), scale=p.scale, enable_gqa=grouped
        )
    return int(choice) == KERNELS[kernel].value
