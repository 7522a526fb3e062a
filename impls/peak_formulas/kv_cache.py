"""Peak bytes of `kv_cache` on the CPU in fp32, where every query sees every key, as in decoding."""

from dataclasses import replace
from typing import Any

from ..axes.kv_storage import AS_USUAL, CODE_BYTES, PLAIN, SCALE_BYTES, keys_of_block
from ..problem import Device, Problem
from ..shared.mask_counts import unmasked_pairs
from . import sdpa
from .sizes import Sizes

FLOAT_BYTES = 4
FP8_BYTES = 6  # of a number while it is converted: as 16 bits, then in fp32


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


def peak_bytes(problem: Problem, device: Device, threads: int, *, variant: str) -> int | None:
    """None with gradients and under a mask."""
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
    kernel = "flash" if sdpa.takes_flash(plain) else "math"
    if kernel == "math" and p.page and p.batch > 1 and p.kv_heads > 1:
        return None  # heads of a page lie side by side: batched products copy them
    attending = sdpa.peak_bytes(plain, device, threads, variant=kernel)
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
