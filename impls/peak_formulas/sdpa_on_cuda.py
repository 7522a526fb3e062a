"""Peak bytes of torch's fused kernels for CUDA, in half precision; every row of
results/reference/h200-* is met to the byte.
"""

from ..masks import is_causal, needs_matrix
from ..problem import Problem
from .sizes import Sizes

ACCUMULATED_ABOVE = 128  # columns of values that the efficient kernel does not keep in registers
WIDEST, WIDTH_STEP = 256, 8  # of a head, in the flash kernel
SPLIT_BELOW = 256  # programs of 64 queries: with fewer, flash may split the keys on 160 SMs
MOST_SPLITS = 128  # num_splits_heuristic in flash_api.cpp
TILE = 128  # queries, of which sums for gradients are rounded up to whole ones
FLASH_RANDOM, CUDNN_RANDOM = 24, 16  # bytes of a generator's state, which both keep
CUDNN_WORKSPACE = 256


def peak_bytes(p: Problem, kernel: str) -> int | None:
    """In scope core. With gradients only of whole tiles and as many queries as keys."""
    z = Sizes(p)
    known = p.scope == "core" and p.dtype != "fp32" and p.d_k == p.d_v and not p.empty_rows
    whole = p.seq_len == p.kv_seq_len and not p.seq_len % TILE
    if not known or p.lengths or (p.backward and (not whole or needs_matrix(p))):
        return None
    if kernel != "efficient" and (p.d_k > WIDEST or p.d_k % WIDTH_STEP):
        return None
    found = {"flash": _flash, "cudnn": _cudnn, "efficient": _efficient}[kernel](p)
    if found is None or not needs_matrix(p):
        return found
    making = z.making_mask() if p.mask in ("none", "local", "chunked") else 0
    # What the kernel itself needs under a mask no row has shown; it is less than the positions.
    return making if making > found + z.mask() * (1 + 2 * p.item_bytes) else None


def most_bytes(backend: str, p: Problem) -> int | None:
    """Of sdpa, which takes one of these kernels by itself, and as models call it (hf)."""
    plain = p.scope == "core" and not (p.backward or p.lengths or p.softcap or p.sinks)
    if not plain or p.dtype == "fp32" or p.d_k % WIDTH_STEP or p.d_v % WIDTH_STEP:
        return None
    z = Sizes(p)
    if not needs_matrix(p) and p.d_k == p.d_v <= WIDEST:
        return z.padded + z.o + _log_sum_exp(p) + CUDNN_WORKSPACE + FLASH_RANDOM + _splits(p)
    group = p.heads // p.kv_heads
    if group > 1 and backend == "sdpa":  # efficient refuses shared keys, and math takes over
        return None
    repeated = group * (z.k + z.v) if group > 1 else 0
    mask = z.mask() * (1 + 2 * p.item_bytes) if needs_matrix(p) and not is_causal(p) else 0
    return max(z.making_mask() if mask else 0, z.padded + repeated + _output(p) + mask)


def _flash(p: Problem) -> int | None:
    """Output, log-sum-exp; with gradients sums of the queries' in fp32, a copy of keys' and values'
    for each query head, and the output and its gradient in the order of tokens.
    """
    z, log_sum_exp = Sizes(p), _log_sum_exp(p)
    forward = z.o + log_sum_exp + FLASH_RANDOM
    if not p.backward:
        return forward if not _splits(p) else None
    return forward + _gradients(p) + 2 * z.o


def _cudnn(p: Problem) -> int | None:
    z = Sizes(p)
    if p.seq_len != p.kv_seq_len:
        return None
    if not p.backward:
        return z.o + CUDNN_WORKSPACE + CUDNN_RANDOM
    return z.o + _log_sum_exp(p) + CUDNN_RANDOM + _gradients(p) + CUDNN_WORKSPACE


def _efficient(p: Problem) -> int | None:
    return None if p.backward or p.kv_heads != p.heads else _output(p)


def _gradients(p: Problem) -> int:
    z, group = Sizes(p), p.heads // p.kv_heads
    repeated = group * (z.k + z.v) if group > 1 else 0
    width = -(-p.d_k // 32) * 32 if p.d_k <= 128 else -(-p.d_k // 64) * 64
    sums = 4 * p.batch * p.heads * p.seq_len * width
    return z.q + z.k + z.v + repeated + sums + _log_sum_exp(p)


def _output(p: Problem) -> int:
    """And its sums in fp32, where heads are wide."""
    z = Sizes(p)
    return z.o + (z.o // p.item_bytes * 4 if p.d_v > ACCUMULATED_ABOVE else 0)


def _log_sum_exp(p: Problem) -> int:
    return 4 * p.batch * p.heads * Sizes(p).rows


def _splits(p: Problem) -> int:
    """Most bytes of partial outputs and their log-sum-exps, in fp32."""
    z = Sizes(p)
    if p.batch * p.heads * -(-z.rows // 64) >= SPLIT_BELOW:
        return 0
    splits = min(MOST_SPLITS, -(-p.kv_seq_len // 64))
    return splits * 4 * p.batch * p.heads * z.rows * (p.d_v + 1)
