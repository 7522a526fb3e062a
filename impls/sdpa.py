"""torch.nn.functional.scaled_dot_product_attention: bare `sdpa` leaves the kernel to torch,
`sdpa:<kernel>` pins one.

A pinned kernel is the only one that torch may use while `context` is in force; where it cannot run,
torch raises instead of falling back.
"""

import warnings
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from .backend import TORCH_DTYPE, Call, Inputs, Weights
from .layer import as_call
from .masks.tensors import given, kept, seen_rows
from .peak_formulas.sizes import Sizes
from .problem import MASKS as EVERY_MASK
from .problem import Problem

MASKS = EVERY_MASK
VARIANTS = ("math", "flash", "efficient", "cudnn")
PINS_KERNEL = True

KERNELS = {
    "math": SDPBackend.MATH,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None, *, variant: str) -> Call:
    scale, grouped = problem.scale, problem.kv_heads != problem.heads
    if not _masked(problem):
        from_corner = _from_top_left(problem)
        return as_call(
            problem,
            inputs,
            weights,
            lambda q, k, v: scaled_dot_product_attention(
                q, k, v, is_causal=from_corner, scale=scale, enable_gqa=grouped
            ),
        )
    if (
        problem.mask == "none"
        and variant in ("", "flash")
        and inputs.query.is_cuda
        and _refusal(problem, inputs.query.device, "flash") is None
    ):
        # The one kernel that has the lower-right triangle built in; torch reaches it through this
        # bias, whose module brings its compiler.
        from torch.nn.attention.bias import causal_lower_right

        bias = causal_lower_right(problem.seq_len, problem.kv_seq_len)
        return as_call(
            problem,
            inputs,
            weights,
            lambda q, k, v: scaled_dot_product_attention(
                q, k, v, attn_mask=bias, scale=scale, enable_gqa=grouped
            ),
        )

    keep = given(problem, inputs.query.device)

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        seen = keep if keep is not None else kept(problem, seen_rows(problem, q.device))
        assert seen is not None
        mask = (
            seen[:, None].expand(-1, -1, q.shape[2], -1) if seen.dim() == 3 else seen
        )  # [batch or 1, 1, rows, n_kv], or [rows, n_kv]
        return scaled_dot_product_attention(
            q, k, v, attn_mask=mask, scale=scale, enable_gqa=grouped
        )

    return as_call(problem, inputs, weights, attend)


def _from_top_left(problem: Problem) -> bool:
    """Whether torch's is_causal says what is meant. After the empty rows are cut off, the triangle
    starts at the corner.
    """
    return problem.mask == "none" and problem.causal and max(problem.causal_offset, 0) == 0


def _masked(problem: Problem) -> bool:
    """Whether torch needs a matrix: for every other mask, and where the triangle starts further
    right. Then is_causal is wrong, unless the first query sees every key already."""
    return problem.mask != "none" or 0 < problem.causal_offset < problem.kv_seq_len - 1


def context(problem: Problem, *, variant: str) -> AbstractContextManager[object]:
    return sdpa_kernel([KERNELS[variant]]) if variant else nullcontext()


def why_not(problem: Problem, device: torch.device, *, variant: str) -> str | None:
    if variant in ("", "math"):
        return None
    if device.type != "cuda" and variant != "flash":
        return f"torch has the {variant} kernel for CUDA only, not for {device.type}"
    return _refusal(problem, device, variant)


def _refusal(problem: Problem, device: torch.device, kernel: str) -> str | None:
    """Torch's own reason for not running the kernel; None where it would."""
    with warnings.catch_warnings(record=True) as caught, sdpa_kernel([KERNELS[kernel]]):
        warnings.simplefilter("always")
        try:
            if _chosen(problem, device, kernel) == KERNELS[kernel].value:
                return None
        except RuntimeError as error:  # torch's way of saying that no enabled kernel fits
            reasons = [str(error)]
        else:
            reasons = []
        told = [
            str(warning.message).split(" (Triggered internally")[0].strip() for warning in caught
        ]
    # Torch goes through all kernels; a line that ends in a colon names the next one, and those we
    # disabled say only that.
    reasons = [
        line for line in told if not line.endswith(":") and "runtime disabled" not in line
    ] or reasons
    return f"torch refuses the {kernel} kernel: {' '.join(dict.fromkeys(reasons))}"


def _chosen(problem: Problem, device: torch.device, kernel: str = "") -> int:
    """The kernel that torch would take, asked with tensors of the true shape that own one row of
    memory each.
    """
    p = problem

    def shaped(heads: int, length: int, width: int) -> Tensor:
        row = torch.empty(width, dtype=TORCH_DTYPE[p.dtype], device=device)
        return row.as_strided((p.batch, heads, length, width), (0, 0, 0, 1)).requires_grad_(
            p.backward
        )

    n_q = p.seq_len - p.empty_rows
    with torch.no_grad():
        q, k, v = (
            shaped(p.heads, n_q, p.d_k),
            shaped(p.kv_heads, p.kv_seq_len, p.d_k),
            shaped(p.kv_heads, p.kv_seq_len, p.d_v),
        )
        mask = None
        if p.mask != "none" or (_masked(p) and not (device.type == "cuda" and kernel == "flash")):
            mask = torch.empty(p.kv_seq_len, dtype=torch.bool, device=device).as_strided(
                (p.batch, 1, n_q, p.kv_seq_len), (0, 0, 0, 1)
            )
    with torch.set_grad_enabled(p.backward):
        grouped = p.kv_heads != p.heads
        return int(
            torch._fused_sdp_choice(
                q, k, v, mask, 0.0, _from_top_left(p), scale=p.scale, enable_gqa=grouped
            )
        )


def peak_bytes(problem: Problem, device: torch.device, threads: int, *, variant: str) -> int | None:
    """In fp32 on the CPU: forward for both of its kernels, gradients for flash in scope "core".
    None where no formula has been checked.
    """
    if device.type != "cpu" or problem.dtype != "fp32" or _masked(problem):
        return None
    z = Sizes(problem)
    flash = (
        variant in ("", "flash") and _chosen(problem, device) == SDPBackend.FLASH_ATTENTION.value
    )
    if problem.backward:
        return (
            _flash_training_peak(problem, threads)
            if flash and problem.scope == "core" and not problem.empty_rows
            else None
        )
    core = max(_flash_peak(problem, threads) if flash else _math_peak(problem), z.padded)
    if problem.scope == "core":
        return core
    merged = flash and not z.padded  # this kernel writes the merged layout, which padding undoes
    return max(z.projected + core, z.o + z.y if merged else z.after_core)


def _flash_peak(p: Problem, threads: int) -> int:
    """Output, log-sum-exp, and each thread's tile in float32
    (ATen/native/cpu/FlashAttentionKernel.cpp).
    """
    z = Sizes(p)
    q_tile, kv_tile = _flash_tiles(p)
    tile = q_tile * kv_tile + 2 * q_tile + q_tile * p.d_v
    return z.o + 4 * p.batch * p.heads * z.rows + 4 * threads * tile


def _flash_training_peak(p: Problem, threads: int) -> int:
    """While the gradients are computed: two tiles per thread, and the output's gradient brought
    into the layout of the output.
    """
    z = Sizes(p)
    q_tile, kv_tile = _flash_tiles(p)
    relaid = z.o if p.heads > 1 and p.seq_len > 1 else 0
    backward = relaid + z.q + z.k + z.v + 8 * threads * q_tile * kv_tile + 4 * q_tile
    peak = z.o + 4 * p.batch * p.heads * z.rows + backward
    return peak if p.passes == "backward" else max(peak, _flash_peak(p, threads))


def _flash_tiles(p: Problem) -> tuple[int, int]:
    rows = p.seq_len - p.empty_rows
    return min(256 if rows >= 768 else 64 if rows >= 192 else 32, rows), min(512, p.kv_seq_len)


def _math_peak(p: Problem) -> int:
    """Scaled q, scores, weights, and what _safe_softmax needs to find rows that see nothing: a byte
    per score and per row, one sum.
    """
    z = Sizes(p)
    shared = p.kv_heads != p.heads
    k = z.k // p.kv_heads * p.heads  # shared key/value heads are repeated
    v = z.v // p.kv_heads * p.heads
    kept = z.q + (k + v if shared else 0) + (4 * z.rows * p.kv_seq_len if _from_top_left(p) else 0)
    k_copy, v_copy = (
        (0, 0)
        if shared
        else (z.copied(k, p.heads, p.kv_seq_len), z.copied(v, p.heads, p.kv_seq_len))
    )
    first = k + z.copied(z.q, p.heads, z.rows) + k_copy + z.s
    softmax = 2 * z.s + z.s // p.item_bytes + p.batch * p.heads * z.rows + 4
    return kept + max(first, softmax, z.s + v_copy + z.o)
