"""Peak bytes of `sdpa`: on the CPU in fp32, for torch's flash and math kernels; on CUDA of a pinned
kernel (sdpa_on_cuda.py).
"""

from ..masks import is_causal, needs_matrix
from ..problem import Device, Problem
from ..shared.cpu_flags import cpu_flags
from . import sdpa_on_cuda
from .sizes import KNOWN_MASKS, Sizes


def peak_bytes(problem: Problem, device: Device, threads: int, *, variant: str) -> int | None:
    """Forward for both kernels, for flash also where torch needs the mask as a matrix; with
    gradients for flash in scope "core".
    """
    p, matrix = problem, needs_matrix(problem)
    if device.type == "cuda" and variant in ("flash", "efficient", "cudnn"):
        return sdpa_on_cuda.peak_bytes(p, variant)
    if device.type != "cpu" or p.dtype != "fp32":
        return None
    z = Sizes(p)
    flash = variant in ("", "flash") and takes_flash(p)
    if matrix and (p.backward or p.lengths or p.mask not in KNOWN_MASKS or not flash):
        return None
    if p.backward:
        known = flash and p.scope == "core" and not p.empty_rows
        return _flash_training_peak(p, threads) if known else None
    core = max(_flash_peak(p, threads) if flash else _math_peak(p), z.padded)
    if matrix:  # which torch turns into numbers to add
        core = max(z.making_mask(), core + z.mask() * (1 + p.item_bytes))
    if p.scope == "core":
        return core
    merged = flash and not z.padded  # flash writes merged heads, which padding undoes
    return max(z.projected + core, z.o + z.y if merged else z.after_core)


def takes_flash(problem: Problem) -> bool:
    """Whether torch's flash kernel for CPUs takes a problem.

    Source: use_flash_attention_cpp in ATen/native/transformers/sdp_utils_cpp.cpp.
    """
    return problem.d_k == problem.d_v


def _flash_peak(p: Problem, threads: int) -> int:
    """Output, log-sum-exp, and a float32 tile per thread.

    Source: ATen/native/cpu/FlashAttentionKernel.cpp.
    """
    z = Sizes(p)
    q_tile, kv_tile = _flash_tiles(p)
    tile = q_tile * kv_tile + 2 * q_tile + q_tile * p.d_v
    return z.o + 4 * p.batch * p.heads * z.rows + 4 * threads * tile


def flash_bytes_in_half(problem: Problem, threads: int) -> int:
    """What flash has in bf16 and fp16 besides: copies of its float32 tiles of weights, one per
    thread, two with gradients. At most: heads that share a key may be rows of one tile. In bf16 a
    CPU with AMX computes from keys and values in an order of its own, made of copies of a tile per
    thread.
    """
    p = problem
    q_tile, kv_tile = _flash_tiles(p, copies=p.heads // p.kv_heads)
    tiles = (4 if p.backward else 2) * threads * q_tile * kv_tile
    if p.dtype != "bf16" or "amx_bf16" not in cpu_flags():
        return tiles
    keys, d_k, d_v = (x + x % 2 for x in (p.kv_seq_len, p.d_k, p.d_v))  # AMX takes pairs
    ordered = 2 * p.batch * p.heads * keys * (d_k + d_v)
    return tiles + ordered + 2 * threads * kv_tile * max(d_k, d_v)


def _flash_training_peak(p: Problem, threads: int) -> int:
    """While gradients are computed: two tiles per thread, and the output's gradient copied into the
    layout of the output.
    """
    z = Sizes(p)
    q_tile, kv_tile = _flash_tiles(p)
    copied = z.o if p.heads > 1 and p.seq_len > 1 else 0
    backward = copied + z.q + z.k + z.v + 8 * threads * q_tile * kv_tile + 4 * q_tile
    peak = z.o + 4 * p.batch * p.heads * z.rows + backward
    return peak if p.passes == "backward" else max(peak, _flash_peak(p, threads))


def _flash_tiles(p: Problem, copies: int = 1) -> tuple[int, int]:
    rows = (p.seq_len - p.empty_rows) * copies
    return min(256 if rows >= 768 else 64 if rows >= 192 else 32, rows), min(512, p.kv_seq_len)


def _math_peak(p: Problem) -> int:
    """Scaled q, scores, weights, and what _safe_softmax needs to find fully masked rows: a byte per
    score and per row, and one sum.
    """
    z = Sizes(p)
    grouped = p.kv_heads != p.heads
    k, v = (x // p.kv_heads * p.heads for x in (z.k, z.v))  # shared key/value heads are repeated
    kept = z.q + (k + v if grouped else 0) + (4 * z.rows * p.kv_seq_len if is_causal(p) else 0)
    k_copy, v_copy = (0 if grouped else z.copied(x, p.heads, p.kv_seq_len) for x in (k, v))
    computing_scores = k + z.copied(z.q, p.heads, z.rows) + k_copy + z.s
    softmax = 2 * z.s + z.s // p.item_bytes + p.batch * p.heads * z.rows + 4
    return kept + max(computing_scores, softmax, z.s + v_copy + z.o)
