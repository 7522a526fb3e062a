"""Tiles of tensors, which keys they meet, and their scores: what both directions share."""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
INFINITY = tl.constexpr(float("inf"))
# Compiled for any value, so that a sweep over N compiles once.
SIZES = ["heads", "group", "n_q", "n_kv", "packed_rows", "offset", "window"]


@triton.jit
def tile_offsets(rows, strides, PAD: tl.constexpr):
    """Offsets of the elements of a tile, [rows, PAD]."""
    row_offsets = rows[:, None].to(tl.int64) * strides[2]
    return row_offsets + tl.arange(0, PAD)[None, :].to(tl.int64) * strides[3]


@triton.jit
def head_start(x, strides, batch, head, first, DESCRIPTORS: tl.constexpr):
    """Pointer to the row `first` of a head; a descriptor covers all heads."""
    if not DESCRIPTORS:
        x += batch * strides[0] + head * strides[1] + first * strides[2]
    return x


@triton.jit
def sequence(q_starts, kv_starts, batch, n_q, n_kv, packed_rows, offset):
    """Of a sequence: its entry of the batch, its first query and key, in 64 bits, how many it has,
    its offset, and the rows of lse.
    """
    q_first, kv_first, lse_rows = 0, 0, n_q
    if q_starts is not None:
        q_first, q_end = tl.load(q_starts + batch), tl.load(q_starts + batch + 1)
        kv_first, kv_end = tl.load(kv_starts + batch), tl.load(kv_starts + batch + 1)
        n_q, n_kv = q_end - q_first, kv_end - kv_first
        q_first, kv_first = q_first.to(tl.int64), kv_first.to(tl.int64)
        batch, offset, lse_rows = batch * 0, n_kv - n_q, packed_rows
    return batch, q_first, kv_first, n_q, n_kv, offset, lse_rows


@triton.jit
def load_rows(
    x, batch, head, start, strides, offsets, valid,
    WIDTH: tl.constexpr, GUARDED: tl.constexpr, DESCRIPTORS: tl.constexpr,
    page_table=None, PAGE: tl.constexpr = 0,
):  # fmt: skip
    """The tile whose first row is `start`. A descriptor reads zero beyond the edges."""
    if DESCRIPTORS:
        tile = x.load([batch.to(tl.int32), head.to(tl.int32), start, 0])
        tile = tile.reshape(offsets.shape[0], offsets.shape[1])
    elif page_table is not None:
        # Each row by itself: a tile may hold several pages, or end within one.
        rows = start + tl.arange(0, offsets.shape[0])
        pages = tl.load(page_table + rows // PAGE, mask=valid, other=0).to(tl.int64) * strides[0]
        within = tile_offsets(rows % PAGE, strides, offsets.shape[1])
        tile = load_tile(x, pages[:, None] + within, valid, WIDTH, GUARDED)
    else:
        tile = load_tile(x + tl.cast(start, tl.int64) * strides[2], offsets, valid, WIDTH, GUARDED)
    return tile


@triton.jit
def load_tile(base, offsets, valid, WIDTH: tl.constexpr, GUARDED: tl.constexpr):
    """Reads zero, without touching memory, in columns from WIDTH on and, if GUARDED, in rows that
    are not valid.
    """
    if offsets.shape[1] != WIDTH:
        inside = (tl.arange(0, offsets.shape[1]) < WIDTH)[None, :]
        if GUARDED:
            inside = inside & valid[:, None]
        tile = tl.load(base + offsets, mask=inside, other=0.0)
    elif GUARDED:
        tile = tl.load(base + offsets, mask=valid[:, None], other=0.0)
    else:
        tile = tl.load(base + offsets)
    return tile


@triton.jit
def load_own(x, strides, batch, head, first, rows, valid, WIDTH: tl.constexpr, PAD: tl.constexpr):
    """The tile that a program holds, of rows behind the row `first`."""
    x = head_start(x, strides, batch, head, first, False)
    return load_tile(x, tile_offsets(rows, strides, PAD), valid, WIDTH, True)


@triton.jit
def store_own(x, strides, batch, head, first, rows, valid, tile, WIDTH: tl.constexpr):
    x = head_start(x, strides, batch, head, first, False)
    inside = valid[:, None] & (tl.arange(0, tile.shape[1]) < WIDTH)[None, :]
    offsets = tile_offsets(rows, strides, tile.shape[1])
    tl.store(x + offsets, tile.to(x.dtype.element_ty), mask=inside)


@triton.jit
def band_start(positions, window, BAND: tl.constexpr):
    """The first position that a query at each of these sees; negative for none before it."""
    return positions // window * window if BAND == "chunked" else positions - window


@triton.jit
def band_end(positions, window, BAND: tl.constexpr):
    """The first position behind those that a query at each of these sees, were it not causal.

    The band is symmetric: in the same way keys see positions of queries.
    """
    last = positions // window * window - 1 if BAND == "chunked" else positions
    return last + window + 1


@triton.jit
def key_range(
    first_row, last_row, offset, n_kv, window,
    CAUSAL: tl.constexpr, BAND: tl.constexpr, BLOCK_KV: tl.constexpr,
):  # fmt: skip
    """Bounds for the queries first_row..last_row, in order: none sees a key before `start`, all of
    them see the keys from `inner` to `whole`, none sees a key from `end` on. All but `end` are
    multiples of BLOCK_KV.
    """
    start, inner, whole, end = 0, 0, n_kv, n_kv
    if CAUSAL:
        whole, end = first_row + offset + 1, last_row + offset + 1
    elif window is not None:
        whole = band_end(first_row + offset, window, BAND)
        end = band_end(last_row + offset, window, BAND)
    end = tl.minimum(tl.maximum(end, 0), n_kv)
    whole = tl.minimum(tl.maximum(whole, 0), n_kv) // BLOCK_KV * BLOCK_KV
    if window is not None:
        start = tl.maximum(band_start(first_row + offset, window, BAND), 0) // BLOCK_KV * BLOCK_KV
        inner = tl.maximum(band_start(last_row + offset, window, BAND), 0)
        inner = tl.cdiv(tl.minimum(inner, end), BLOCK_KV) * BLOCK_KV
        whole = tl.maximum(whole, inner)
    return start, inner, whole, end


@triton.jit
def valid_keys(keys, n_kv, key_mask, key_mask_strides, batch):
    valid = keys < n_kv
    if key_mask is not None:
        places = batch * key_mask_strides[0] + keys.to(tl.int64) * key_mask_strides[1]
        valid = valid & (tl.load(key_mask + places, mask=valid, other=0) != 0)
    return valid


@triton.jit
def capped(scores, cap_factor, EXACT: tl.constexpr):
    """tanh(scores * cap_factor), or the scores themselves if there is no cap."""
    if cap_factor is not None:
        x = scores * cap_factor
        scores = 1.0 - 2.0 / (tl.exp2(x * (2.0 * LOG2_E)) + 1.0)
        if EXACT:  # near zero the difference loses digits: the series of tanh
            square = x * x
            terms = 1.0 + square * (-1.0 / 3.0 + square * (2.0 / 15.0 - square * (17.0 / 315.0)))
            scores = tl.where(square < 0.04, x * terms, scores)
    return scores


@triton.jit
def visible(positions, keys, window, CAUSAL: tl.constexpr, BAND: tl.constexpr):
    """Whether queries at these positions see these keys, of shapes that broadcast; one of CAUSAL
    and `window` is given.
    """
    if window is None:
        seen = keys <= positions
    else:
        seen = keys >= band_start(positions, window, BAND)
        seen = seen & (keys <= positions if CAUSAL else keys < band_end(positions, window, BAND))
    return seen


@triton.jit
def masked_scores(
    q_tile, k_tile, rows, keys, valid, offset, window, cap_factor,
    CAUSAL: tl.constexpr, BAND: tl.constexpr, EDGE: tl.constexpr, GUARDED: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Q K^T, capped, [queries, keys]; -inf for masked pairs. GUARDED: keys may be invalid."""
    qk = tl.dot(q_tile, tl.trans(k_tile), input_precision=PRECISION)
    qk = capped(qk, cap_factor, q_tile.dtype == tl.float32)
    if GUARDED:
        seen = valid[None, :]
        if EDGE and (CAUSAL or window is not None):
            positions = (rows + offset)[:, None]
            seen = seen & visible(positions, keys[None, :], window, CAUSAL, BAND)
        qk = tl.where(seen, qk, -INFINITY)
    return qk
