"""The gradients of queries, and of keys and values, from recomputed weights."""

import triton
import triton.language as tl

from .tiles import (
    INFINITY,
    LN_2,
    LOG2_E,
    SIZES,
    band_end,
    band_start,
    capped,
    head_start,
    key_range,
    load_rows,
    load_tile,
    masked_scores,
    sequence,
    store_tile,
    tile_offsets,
    valid_keys,
)


@triton.jit
def load_lse(lse, rows, valid, GUARDED: tl.constexpr):
    """+inf for queries that see no key, so that their weights are exp2(-inf) = 0; not GUARDED: all
    rows are valid, and see one.
    """
    if GUARDED:
        loaded = tl.load(lse + rows, mask=valid, other=INFINITY)
        loaded = tl.where(loaded == -INFINITY, INFINITY, loaded)
    else:
        loaded = tl.load(lse + rows)
    return loaded


@triton.jit
def uncapped_gradient(ds, qk, cap_factor):
    """The gradient of scores from that of capped ones; masked ones, of weight zero, have none."""
    if cap_factor is not None:
        ds = tl.where(qk == -INFINITY, 0.0, ds * (1.0 - qk * qk))
    return ds


@triton.jit
def scale_of(scale_log2, cap_factor):
    """The factor of Q K^T in the gradient."""
    scale = scale_log2 * LN_2
    if cap_factor is not None:
        scale *= cap_factor
    return scale


@triton.jit
def add_keys_to_dq(
    dq_tile, dp_mean, q_tile, do_tile, lse_tile, delta_tile, k, v, key_mask, sinks, batch, kv_head,
    k_offsets, v_offsets, k_strides, v_strides, key_mask_stride, rows, n_kv, offset, window,
    scale_log2, cap_factor, first, last,
    D_K: tl.constexpr, D_V: tl.constexpr, CAUSAL: tl.constexpr, BAND: tl.constexpr,
    MASKED: tl.constexpr, EDGE: tl.constexpr, PRECISION: tl.constexpr, BLOCK_KV: tl.constexpr,
    DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """dq with what the keys first..last-1 contribute to it; with sinks also dp_mean."""
    for start in range(first, last, BLOCK_KV):
        keys = start + tl.arange(0, BLOCK_KV)
        valid = valid_keys(keys, n_kv, key_mask, key_mask_stride, MASKED)
        k_tile = load_rows(
            k, batch, kv_head, start, k_strides, k_offsets, valid, D_K, EDGE or MASKED, DESCRIPTORS
        )
        v_tile = load_rows(
            v, batch, kv_head, start, v_strides, v_offsets, valid, D_V, EDGE or MASKED, DESCRIPTORS
        )
        qk = masked_scores(
            q_tile, k_tile, rows, keys, valid, offset, window, cap_factor,
            CAUSAL, BAND, MASKED, EDGE, PRECISION,
        )  # fmt: skip
        p = tl.exp2(qk * scale_log2 - lse_tile[:, None])
        dp = tl.dot(do_tile, tl.trans(v_tile), input_precision=PRECISION)
        if sinks is not None:
            dp_mean += tl.sum(p * dp, 1)
        ds = uncapped_gradient(p * (dp - delta_tile[:, None]), qk, cap_factor)
        dq_tile = tl.dot(ds.to(k_tile.dtype), k_tile, dq_tile, input_precision=PRECISION)
    return dq_tile, dp_mean


@triton.jit(do_not_specialize=SIZES)
def grad_q_kernel(
    q, k, v, key_mask, q_starts, kv_starts, sinks, o, do, lse, delta, dq, sink_terms, q_strides,
    k_strides, v_strides, key_mask_strides, o_strides, do_strides, dq_strides, heads, group,
    n_q, n_kv, packed_rows, offset, window, scale_log2, cap_factor,
    D_K: tl.constexpr, D_V: tl.constexpr, PAD_K: tl.constexpr, PAD_V: tl.constexpr,
    CAUSAL: tl.constexpr, BAND: tl.constexpr, MASKED: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr, DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """dq of one tile of queries of one head; also delta, which so takes no pass over o and do.

    `sink_terms`, like lse and delta, are each query's part of the gradient of its head's sink.
    """
    tiles = tl.cdiv(n_q, BLOCK_Q)
    tile, entry = tl.program_id(0) % tiles, tl.program_id(0) // tiles
    if CAUSAL:
        tile = tiles - 1 - tile
    batch, head = (entry // heads).to(tl.int64), (entry % heads).to(tl.int64)
    lse_rows = n_q
    if q_starts is not None:
        q_first, n_q = sequence(q_starts, batch)
        kv_first, n_kv = sequence(kv_starts, batch)
        batch, entry, lse_rows, offset = batch * 0, entry % heads, packed_rows, n_kv - n_q
        n_kv = tl.where(tile * BLOCK_Q < n_q, n_kv, 0)  # tiles behind the end see nothing
        q += q_first * q_strides[2]
        k += kv_first * k_strides[2]
        v += kv_first * v_strides[2]
        o += q_first * o_strides[2]
        do += q_first * do_strides[2]
        dq += q_first * dq_strides[2]
        lse += q_first
        delta += q_first
        if sinks is not None:
            sink_terms += q_first
    q += batch * q_strides[0] + head * q_strides[1]
    kv_head = head // group
    k = head_start(k, batch, kv_head, k_strides, DESCRIPTORS)
    v = head_start(v, batch, kv_head, v_strides, DESCRIPTORS)
    o += batch * o_strides[0] + head * o_strides[1]
    do += batch * do_strides[0] + head * do_strides[1]
    dq += batch * dq_strides[0] + head * dq_strides[1]
    if MASKED:
        key_mask += batch * key_mask_strides[0]
    lse += entry.to(tl.int64) * lse_rows
    delta += entry.to(tl.int64) * lse_rows

    rows = tile * BLOCK_Q + tl.arange(0, BLOCK_Q)
    valid = rows < n_q
    o_tile = load_tile(o, tile_offsets(rows, o_strides, PAD_V), valid, D_V, True)
    do_tile = load_tile(do, tile_offsets(rows, do_strides, PAD_V), valid, D_V, True)
    delta_tile = tl.sum(o_tile.to(tl.float32) * do_tile.to(tl.float32), 1)
    tl.store(delta + rows, delta_tile, mask=valid)
    q_tile = load_tile(q, tile_offsets(rows, q_strides, PAD_K), valid, D_K, True)
    lse_tile = load_lse(lse, rows, valid, True)
    k_offsets = tile_offsets(tl.arange(0, BLOCK_KV), k_strides, PAD_K)
    v_offsets = tile_offsets(tl.arange(0, BLOCK_KV), v_strides, PAD_V)
    dq_tile = tl.zeros([BLOCK_Q, PAD_K], dtype=tl.float32)
    # As delta, but that is of o as it was rounded: too far off for a sum of terms that cancel.
    dp_mean = tl.zeros([BLOCK_Q], dtype=tl.float32) if sinks is not None else delta_tile
    last_row = tl.minimum(tile * BLOCK_Q + BLOCK_Q, n_q) - 1
    start, inner, whole, end = key_range(
        tile * BLOCK_Q, last_row, offset, n_kv, window, CAUSAL, BAND, BLOCK_KV
    )
    key_mask_stride = key_mask_strides[1] if MASKED else 0
    if window is not None and start < inner:
        dq_tile, dp_mean = add_keys_to_dq(
            dq_tile, dp_mean, q_tile, do_tile, lse_tile, delta_tile, k, v, key_mask, sinks,
            batch, kv_head, k_offsets, v_offsets, k_strides, v_strides, key_mask_stride, rows, n_kv,
            offset, window, scale_log2, cap_factor, start, inner, D_K, D_V, CAUSAL, BAND, MASKED,
            True, PRECISION, BLOCK_KV, DESCRIPTORS,
        )  # fmt: skip
    if whole > inner:
        dq_tile, dp_mean = add_keys_to_dq(
            dq_tile, dp_mean, q_tile, do_tile, lse_tile, delta_tile, k, v, key_mask, sinks,
            batch, kv_head, k_offsets, v_offsets, k_strides, v_strides, key_mask_stride, rows, n_kv,
            offset, window, scale_log2, cap_factor, inner, whole, D_K, D_V, CAUSAL, BAND, MASKED,
            False, PRECISION, BLOCK_KV, DESCRIPTORS,
        )  # fmt: skip
    if whole < end:
        dq_tile, dp_mean = add_keys_to_dq(
            dq_tile, dp_mean, q_tile, do_tile, lse_tile, delta_tile, k, v, key_mask, sinks,
            batch, kv_head, k_offsets, v_offsets, k_strides, v_strides, key_mask_stride, rows, n_kv,
            offset, window, scale_log2, cap_factor, whole, end, D_K, D_V, CAUSAL, BAND, MASKED,
            True, PRECISION, BLOCK_KV, DESCRIPTORS,
        )  # fmt: skip
    if sinks is not None:
        weight = tl.exp2(tl.load(sinks + head).to(tl.float32) * LOG2_E - lse_tile)
        sink_terms += entry.to(tl.int64) * lse_rows
        tl.store(sink_terms + rows, -weight * dp_mean, mask=valid)
    offsets = tile_offsets(rows, dq_strides, PAD_K)
    store_tile(dq, offsets, valid, dq_tile * scale_of(scale_log2, cap_factor), D_K)


@triton.jit
def add_queries_to_dk_dv(
    dk_tile, dv_tile, k_tile, v_tile, keys, q, do, lse, delta, q_offsets, do_offsets, q_strides,
    do_strides, batch, head, heads, start, n_q, lse_rows, offset, window, scale_log2, cap_factor,
    D_K: tl.constexpr, D_V: tl.constexpr, CAUSAL: tl.constexpr, BAND: tl.constexpr,
    EDGE: tl.constexpr, PRECISION: tl.constexpr, BLOCK_Q: tl.constexpr, DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """dk and dv with what one block of queries contributes. Transposed: keys are rows."""
    q = head_start(q, batch, head, q_strides, DESCRIPTORS)
    do = head_start(do, batch, head, do_strides, DESCRIPTORS)
    lse += (batch * heads + head) * lse_rows
    delta += (batch * heads + head) * lse_rows
    rows = start + tl.arange(0, BLOCK_Q)
    valid = rows < n_q
    q_tile = load_rows(q, batch, head, start, q_strides, q_offsets, valid, D_K, EDGE, DESCRIPTORS)
    # With descriptors lse is at hand before the scores are, and the product for dp begins before
    # the exponentials, which then run beside it. By pointers that takes too many registers.
    if DESCRIPTORS:
        lse_tile = load_lse(lse, rows, valid, EDGE)
        do_tile = load_rows(
            do, batch, head, start, do_strides, do_offsets, valid, D_V, EDGE, DESCRIPTORS
        )
    kq = tl.dot(k_tile, tl.trans(q_tile), input_precision=PRECISION)  # [keys, queries]
    if DESCRIPTORS:
        dp = tl.dot(v_tile, tl.trans(do_tile), input_precision=PRECISION)
    kq = capped(kq, cap_factor, q_tile.dtype == tl.float32)
    if EDGE and CAUSAL:
        kq = tl.where(keys[:, None] <= (rows + offset)[None, :], kq, -INFINITY)
    if EDGE and window is not None:
        seen = (rows + offset)[None, :] < band_end(keys, window, BAND)[:, None]
        if not CAUSAL:
            seen = seen & ((rows + offset)[None, :] >= band_start(keys, window, BAND)[:, None])
        kq = tl.where(seen, kq, -INFINITY)
    if not DESCRIPTORS:
        lse_tile = load_lse(lse, rows, valid, True)
    p = tl.exp2(kq * scale_log2 - lse_tile[None, :])
    if not DESCRIPTORS:
        do_tile = load_rows(
            do, batch, head, start, do_strides, do_offsets, valid, D_V, EDGE, DESCRIPTORS
        )
    dv_tile = tl.dot(p.to(do_tile.dtype), do_tile, dv_tile, input_precision=PRECISION)
    if not DESCRIPTORS:
        dp = tl.dot(v_tile, tl.trans(do_tile), input_precision=PRECISION)
    if EDGE or not DESCRIPTORS:
        delta_tile = tl.load(delta + rows, mask=valid, other=0.0)
    else:
        delta_tile = tl.load(delta + rows)
    ds = p * (dp - delta_tile[None, :])
    ds = uncapped_gradient(ds, kq, cap_factor)
    dk_tile = tl.dot(ds.to(q_tile.dtype), q_tile, dk_tile, input_precision=PRECISION)
    return dk_tile, dv_tile


@triton.jit(do_not_specialize=SIZES)
def grad_kv_kernel(
    q, k, v, key_mask, q_starts, kv_starts, do, lse, delta, dk, dv, q_strides, k_strides, v_strides,
    key_mask_strides, do_strides, dk_strides, dv_strides, heads, group, n_q, n_kv, packed_rows,
    offset, window, scale_log2, cap_factor,
    D_K: tl.constexpr, D_V: tl.constexpr, PAD_K: tl.constexpr, PAD_V: tl.constexpr,
    CAUSAL: tl.constexpr, BAND: tl.constexpr, MASKED: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr, DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """dk and dv of one tile of keys of one key/value head, summed over the query heads that share
    it.
    """
    tiles = tl.cdiv(n_kv, BLOCK_KV)
    tile, entry = tl.program_id(0) % tiles, tl.program_id(0) // tiles
    kv_heads = heads // group
    batch, kv_head = (entry // kv_heads).to(tl.int64), (entry % kv_heads).to(tl.int64)
    lse_rows = n_q
    if q_starts is not None:
        q_first, n_q = sequence(q_starts, batch)
        kv_first, n_kv = sequence(kv_starts, batch)
        batch, lse_rows, offset = batch * 0, packed_rows, n_kv - n_q
        n_q = tl.where(tile * BLOCK_KV < n_kv, n_q, 0)  # no query sees tiles behind the end
        q += q_first * q_strides[2]
        k += kv_first * k_strides[2]
        v += kv_first * v_strides[2]
        do += q_first * do_strides[2]
        dk += kv_first * dk_strides[2]
        dv += kv_first * dv_strides[2]
        lse += q_first
        delta += q_first
    k += batch * k_strides[0] + kv_head * k_strides[1]
    v += batch * v_strides[0] + kv_head * v_strides[1]
    dk += batch * dk_strides[0] + kv_head * dk_strides[1]
    dv += batch * dv_strides[0] + kv_head * dv_strides[1]
    if MASKED:
        key_mask += batch * key_mask_strides[0]

    keys = tile * BLOCK_KV + tl.arange(0, BLOCK_KV)
    valid = valid_keys(keys, n_kv, key_mask, key_mask_strides[1] if MASKED else 0, MASKED)
    k_tile = load_tile(k, tile_offsets(keys, k_strides, PAD_K), valid, D_K, True)
    v_tile = load_tile(v, tile_offsets(keys, v_strides, PAD_V), valid, D_V, True)
    q_offsets = tile_offsets(tl.arange(0, BLOCK_Q), q_strides, PAD_K)
    do_offsets = tile_offsets(tl.arange(0, BLOCK_Q), do_strides, PAD_V)
    dk_tile = tl.zeros([BLOCK_KV, PAD_K], dtype=tl.float32)
    dv_tile = tl.zeros([BLOCK_KV, PAD_V], dtype=tl.float32)

    # Queries before `first` and from `end` on see none of these keys, those from `whole` to
    # `whole_end` see all of them; all are multiples of BLOCK_Q.
    first, whole, whole_end = 0, 0, n_q // BLOCK_Q * BLOCK_Q
    last_key = tl.minimum(tile * BLOCK_KV + BLOCK_KV, n_kv) - 1
    if CAUSAL:
        first = tl.maximum(tile * BLOCK_KV - offset, 0) // BLOCK_Q * BLOCK_Q
        whole = tl.cdiv(tl.maximum(last_key - offset, 0), BLOCK_Q) * BLOCK_Q
    elif window is not None:
        first = band_start(tile * BLOCK_KV, window, BAND) - offset
        first = tl.maximum(first, 0) // BLOCK_Q * BLOCK_Q
        whole = band_start(last_key, window, BAND) - offset
        whole = tl.cdiv(tl.maximum(whole, 0), BLOCK_Q) * BLOCK_Q
    end = tl.cdiv(n_q, BLOCK_Q) * BLOCK_Q
    if window is not None:
        last = tl.maximum(band_end(last_key, window, BAND) - offset, 0)
        end = tl.minimum(tl.cdiv(last, BLOCK_Q) * BLOCK_Q, end)
        last_whole = tl.maximum(band_end(tile * BLOCK_KV, window, BAND) - offset, 0)
        whole_end = tl.minimum(last_whole // BLOCK_Q * BLOCK_Q, whole_end)
    before = tl.maximum(tl.minimum(whole, end) - first, 0) // BLOCK_Q
    if window is not None:
        behind = tl.maximum(end - tl.maximum(whole_end, whole), 0) // BLOCK_Q
    else:  # the last block, if it is not full
        behind = tl.where((whole < end) & (whole_end < n_q), 1, 0)
    edges = before + behind
    blocks = tl.maximum(whole_end - whole, 0) // BLOCK_Q
    # One loop counts heads and blocks: nested loops would hold twice the registers.
    if blocks > 0:
        for step in range(group * blocks):
            head = kv_head * group + step // blocks
            dk_tile, dv_tile = add_queries_to_dk_dv(
                dk_tile, dv_tile, k_tile, v_tile, keys, q, do, lse, delta, q_offsets, do_offsets,
                q_strides, do_strides, batch, head, heads, whole + step % blocks * BLOCK_Q, n_q,
                lse_rows, offset, window, scale_log2, cap_factor, D_K, D_V, CAUSAL, BAND, False,
                PRECISION, BLOCK_Q, DESCRIPTORS,
            )  # fmt: skip
    if edges > 0:
        for step in range(group * edges):
            head, edge = kv_head * group + step // edges, step % edges
            if window is not None:
                later = tl.maximum(whole_end, whole) + (edge - before) * BLOCK_Q
            else:
                later = whole_end
            start = tl.where(edge < before, first + edge * BLOCK_Q, later)
            dk_tile, dv_tile = add_queries_to_dk_dv(
                dk_tile, dv_tile, k_tile, v_tile, keys, q, do, lse, delta, q_offsets, do_offsets,
                q_strides, do_strides, batch, head, heads, start, n_q, lse_rows, offset, window,
                scale_log2, cap_factor, D_K, D_V, CAUSAL, BAND, True, PRECISION, BLOCK_Q,
                DESCRIPTORS,
            )  # fmt: skip
    # Masked keys read as zero above, which leaves meaningless numbers in their rows.
    dk_tile = tl.where(valid[:, None], dk_tile * scale_of(scale_log2, cap_factor), 0.0)
    dv_tile = tl.where(valid[:, None], dv_tile, 0.0)
    store_tile(dk, tile_offsets(keys, dk_strides, PAD_K), keys < n_kv, dk_tile, D_K)
    store_tile(dv, tile_offsets(keys, dv_strides, PAD_V), keys < n_kv, dv_tile, D_V)
