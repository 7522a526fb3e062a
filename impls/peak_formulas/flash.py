"""Peak bytes of flash kernels and what is made around them: sdpa, hf, cascade, kv_cache, triton."""

from dataclasses import replace
from typing import Any

from ..axes.kv_storage import AS_USUAL, CODE_BYTES, PLAIN, SCALE_BYTES, keys_of_block
from ..masks import is_causal, needs_matrix
from ..problem import Device, Problem
from ..shared.cpu_flags import cpu_flags
from ..shared.mask_counts import unmasked_pairs
from . import sdpa_on_cuda
from .sizes import KNOWN_MASKS, Sizes

FLOAT_BYTES = 4
FP8_BYTES = 6  # of a number while it is converted: as 16 bits, then in fp32
LSE_BYTES = 4  # log-sum-exp and delta are fp32 in every dtype


def sdpa(problem: Problem, device: Device, threads: int, *, variant: str) -> int | None:
    """On the CPU in fp32, forward for the kernels flash and math, for flash also where torch needs
    the mask as a matrix; with gradients for flash in scope "core". On CUDA of a pinned kernel.
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


def hf(
    problem: Problem, device: Device, threads: int, *, variant: str, repo: str | None
) -> int | None:
    """That of `sdpa` on the CPU in fp32, as transformers then copies nothing. Forward, in scope
    "core", where torch runs its flash kernel without a mask.

    Its last operation, `.transpose(1, 2).contiguous()`, copies nothing: torch's flash kernel writes
    an output that lies in memory as the queries do, and those lie token by token.
    """
    p = problem
    if device.type != "cpu":  # where torch has several kernels to choose from
        return None
    if variant not in ("", "sdpa") or p.scope != "core" or p.backward or p.empty_rows:
        return None
    if is_causal(p) and p.kv_seq_len != p.seq_len:  # it cuts keys off, or makes a mask
        return None
    if needs_matrix(p) or not takes_flash(p):
        return None
    return sdpa(p, device, threads, variant="flash")


def cascade(problem: Problem, device: Device, threads: int) -> int | None:
    """On the CPU in fp32, while the prefix is read, while the own keys are, or while both results
    are joined; None with gradients.
    """
    p, z = problem, Sizes(problem)
    if p.backward:
        return None
    of_prefix, of_own = (
        sdpa(one, device, threads, variant="flash") for one in cascade_parts(problem)
    )
    if of_prefix is None or of_own is None:
        return None
    group, own = p.heads // p.kv_heads, p.kv_seq_len - p.prefix
    folded = z.q if min(p.batch, p.kv_heads, group * p.seq_len) > 1 else 0
    mask = p.seq_len * own * p.item_bytes if _has_triangle(p) and p.seq_len < own else 0
    return max(folded + of_prefix, z.o + z.column + mask + of_own, 3 * z.o + 4 * z.column)


def cascade_parts(problem: Problem) -> tuple[Problem, Problem]:
    """What torch's kernel is given, without a triangle: all queries with the prefix, and each
    sequence's with its own keys.
    """
    p, group = problem, problem.heads // problem.kv_heads
    usual = replace(p, causal=False, causal_align="", **AS_USUAL)
    rows: dict[str, Any] = {"heads": p.kv_heads, "seq_len": group * p.seq_len}
    own = replace(usual, kv_seq_len=p.kv_seq_len - p.prefix, **({} if _has_triangle(p) else rows))
    of_all = {**rows, "batch": 1, "seq_len": p.batch * group * p.seq_len}
    return replace(usual, kv_seq_len=p.prefix, **of_all), own


def _has_triangle(problem: Problem) -> bool:
    """As in cascade.py, which imports torch."""
    return problem.causal and problem.seq_len > 1


class Read:
    """Bytes of the tensors that reading so many tokens of each sequence makes."""

    def __init__(self, problem: Problem, tokens: int) -> None:
        p, coded = problem, problem.kv_dtype != PLAIN
        in_pages = -(-tokens // p.page) * p.page if p.page else tokens if p.prefix else 0
        rows = p.batch * p.kv_heads
        # Pages of keys and values one after the other, or a prefix and what follows it; 0 of what
        # already lies so.
        gathered = rows * in_pages * (p.d_k + p.d_v) * (CODE_BYTES if coded else FLOAT_BYTES)
        self.gathered_scales = 2 * rows * in_pages * SCALE_BYTES if coded else 0
        self.k, self.v = (  # in fp32
            rows * (tokens if coded else in_pages) * width * FLOAT_BYTES for width in (p.d_k, p.d_v)
        )
        # The highest moment while codes become numbers: keys, then values.
        one = FP8_BYTES if p.kv_dtype == "fp8" else FLOAT_BYTES
        k, v = self.k // FLOAT_BYTES * one, self.v // FLOAT_BYTES * one
        self.peak = gathered + (max(k, self.k + v) if coded else 0)


def kv_cache(problem: Problem, device: Device, threads: int, *, variant: str) -> int | None:
    """On the CPU in fp32, where every query sees every key, as in decoding; None with gradients."""
    p = problem
    every = p.mask == "none" and unmasked_pairs(p) == p.batch * p.seq_len * p.kv_seq_len
    if device.type != "cpu" or p.dtype != "fp32" or p.backward or not every:
        return None
    if variant == "blocks":
        return _blocks_peak(p)
    read = Read(p, p.kv_seq_len)
    rows = p.heads // p.kv_heads * p.seq_len
    folded: dict[str, Any] = {"heads": p.kv_heads, "seq_len": rows, "causal": False}
    plain = replace(p, **folded, causal_align="", **AS_USUAL)
    kernel = "flash" if takes_flash(plain) else "math"
    if kernel == "math" and p.page and p.batch > 1 and p.kv_heads > 1:
        return None  # heads of a page lie side by side: batched products copy them
    attending = sdpa(plain, device, threads, variant=kernel)
    return max(read.gathered_scales + read.peak, read.k + read.v + (attending or 0))


def _blocks_peak(p: Problem) -> int:
    """Of the first block: while it is read, its scores are computed, or its output is added."""
    z, tokens = Sizes(p), min(keys_of_block(p), p.kv_seq_len)
    read = Read(p, tokens)
    scores = z.column * tokens
    # Tokens of a page have all heads side by side: a batched product copies them.
    paged = bool(p.page) and p.batch > 1 and p.kv_heads > 1 and tokens > 1
    copied = FLOAT_BYTES * p.batch * p.kv_heads * tokens if paged else 0
    k_copy, v_copy = copied * p.d_k, copied * p.d_v
    after = 4 * z.column + max(2 * z.o + v_copy, 3 * z.o)  # m, l and their factors
    computing = read.k + read.v + read.gathered_scales + scores
    beside = max(k_copy, 6 * z.column, after)
    return z.q + 2 * z.column + z.o + max(read.peak, computing + beside)


def triton(problem: Problem, device: Device, threads: int, *, variant: str) -> int | None:
    """Forward: output and log-sum-exp. With gradients: delta and the gradients as well; of sinks a
    term for each query, and their sums, which are rounded to the gradient's dtype.
    """
    if device.type != "cuda":
        return None
    p, z = problem, Sizes(problem)
    lse = LSE_BYTES * p.batch * p.heads * z.rows
    if p.backward:
        known = p.scope == "core" and not p.empty_rows
        rounded = p.item_bytes if p.item_bytes < LSE_BYTES else 0
        sinks = lse + p.heads * (LSE_BYTES + rounded) if p.sinks else 0
        return z.o + 2 * lse + z.q + z.k + z.v + sinks if known else None
    core = max(z.o + lse, z.padded)
    if p.scope == "core":
        return core
    # The kernel writes merged heads, which padding undoes.
    return max(z.projected + core, z.after_core if z.padded else z.o + z.y)
