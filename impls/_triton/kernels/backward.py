"""The gradients of queries, and of keys and values, from recomputed weights."""

import triton
import triton.language as tl

from . import tiles


@triton.jit
def load_lse(lse, rows, valid, GUARDED: tl.constexpr):
    """+inf for queries that see no key, so that their weights are exp2(-inf) = 0; not GUARDED: all
    rows are valid, and see one.
    """
    if GUARDED:
        loaded = tl.load(lse + rows, mask=valid, other=tiles.INFINITY)
        loaded = tl.where(loaded == -tiles.INFINITY, tiles.INFINITY, loaded)
    else:
        loaded = tl.load(lse + rows)
    return loaded


@triton.jit
def uncapped_gradient(ds, qk, cap_factor):
    """The gradient of scores from that of capped ones; masked ones, of weight zero, have none."""
    if cap_factor is not None:
        ds = tl.where(qk == -tiles.INFINITY, 0.0, ds * (1.0 - qk * qk))
    return ds


@triton.jit(do_not_specialize=tiles.SIZES)
def grad_q_kernel(
    q, k, v, key_mask, q_starts, kv_starts, sinks, o, do, lse, delta, dq, sink_terms, q_strides,
    k_strides, v_strides, key_mask_strides, o_strides, do_strides, dq_strides, heads, group,
    n_q, n_kv, packed_rows, offset, window, scale, scale_log2, cap_factor,
    D_K: tl.constexpr, D_V: tl.constexpr, PAD_K: tl.constexpr, PAD_V: tl.constexpr,
    CAUSAL: tl.constexpr, BAND: tl.constexpr, PRECISION: tl.constexpr, BLOCK_Q: tl.constexpr,
    BLOCK_KV: tl.constexpr, DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """dq of one tile of queries of one head; also delta, which so takes no pass over o and do.

    `sink_terms`, like lse and delta, are each query's part of the gradient of its head's sink.
    """
    tile_count = tl.cdiv(n_q, BLOCK_Q)
    tile, entry = tl.program_id(0) % tile_count, tl.program_id(0) // tile_count
    if CAUSAL:
        tile = tile_count - 1 - tile
    batch, head = (entry // heads).to(tl.int64), (entry % heads).to(tl.int64)
    batch, q_first, kv_first, n_q, n_kv, offset, lse_rows = tiles.sequence(
        q_starts, kv_starts, batch, n_q, n_kv, packed_rows, offset
    )
    n_kv = tl.where(tile * BLOCK_Q < n_q, n_kv, 0)  # tiles behind a sequence's end see nothing
    kv_head = head // group
    k = tiles.head_start(k, k_strides, batch, kv_head, kv_first, DESCRIPTORS)
    v = tiles.head_start(v, v_strides, batch, kv_head, kv_first, DESCRIPTORS)
    first_row = (batch * heads + head) * lse_rows + q_first
    lse += first_row
    delta += first_row

    rows = tile * BLOCK_Q + tl.arange(0, BLOCK_Q)
    valid = rows < n_q
    o_tile = tiles.load_own(o, o_strides, batch, head, q_first, rows, valid, D_V, PAD_V)
    do_tile = tiles.load_own(do, do_strides, batch, head, q_first, rows, valid, D_V, PAD_V)
    delta_tile = tl.sum(o_tile.to(tl.float32) * do_tile.to(tl.float32), 1)
    tl.store(delta + rows, delta_tile, mask=valid)
    q_tile = tiles.load_own(q, q_strides, batch, head, q_first, rows, valid, D_K, PAD_K)
    lse_tile = load_lse(lse, rows, valid, True)
    k_offsets = tiles.tile_offsets(tl.arange(0, BLOCK_KV), k_strides, PAD_K)
    v_offsets = tiles.tile_offsets(tl.arange(0, BLOCK_KV), v_strides, PAD_V)
    dq_tile = tl.zeros([BLOCK_Q, PAD_K], dtype=tl.float32)
    # As delta, but that is of o as it was rounded: too far off for a sum of terms that cancel.
    dp_mean = tl.zeros([BLOCK_Q], dtype=tl.float32) if sinks is not None else delta_tile
    last_row = tl.minimum(tile * BLOCK_Q + BLOCK_Q, n_q) - 1
    start, inner, whole, end = tiles.key_range(
        tile * BLOCK_Q, last_row, offset, n_kv, window, CAUSAL, BAND, BLOCK_KV
    )
    for part in tl.static_range(3):  # keys before, among and behind those that all queries see
        if part != 0 or window is not None:
            first = start if part == 0 else (inner if part == 1 else whole)
            last = inner if part == 0 else (whole if part == 1 else end)
            if first < last:
                for key in range(first, last, BLOCK_KV):
                    keys = key + tl.arange(0, BLOCK_KV)
                    present = tiles.valid_keys(keys, n_kv, key_mask, key_mask_strides, batch)
                    k_tile = tiles.load_rows(
                        k, batch, kv_head, key, k_strides, k_offsets, present, D_K,
                        part != 1 or key_mask is not None, DESCRIPTORS,
                    )  # fmt: skip
                    v_tile = tiles.load_rows(
                        v, batch, kv_head, key, v_strides, v_offsets, present, D_V,
                        part != 1 or key_mask is not None, DESCRIPTORS,
                    )  # fmt: skip
                    qk = tiles.masked_scores(
                        q_tile, k_tile, rows, keys, present, offset, window, cap_factor,
                        CAUSAL, BAND, part != 1, part != 1 or key_mask is not None, PRECISION,
                    )  # fmt: skip
                    p = tl.exp2(qk * scale_log2 - lse_tile[:, None])
                    dp = tl.dot(do_tile, tl.trans(v_tile), input_precision=PRECISION)
                    if sinks is not None:
                        dp_mean += tl.sum(p * dp, 1)
                    ds = uncapped_gradient(p * (dp - delta_tile[:, None]), qk, cap_factor)
                    ds = ds.to(k_tile.dtype)
                    dq_tile = tl.dot(ds, k_tile, dq_tile, input_precision=PRECISION)
    if sinks is not None:
        weight = tl.exp2(tl.load(sinks + head).to(tl.float32) * tiles.LOG2_E - lse_tile)
        tl.store(sink_terms + first_row + rows, -weight * dp_mean, mask=valid)
    tiles.store_own(dq, dq_strides, batch, head, q_first, rows, valid, dq_tile * scale, D_K)


@triton.jit(do_not_specialize=tiles.SIZES)
def grad_kv_kernel(
    q, k, v, key_mask, q_starts, kv_starts, do, lse, delta, dk, dv, q_strides, k_strides, v_strides,
    key_mask_strides, do_strides, dk_strides, dv_strides, heads, group, n_q, n_kv, packed_rows,
    offset, window, scale, scale_log2, cap_factor,
    D_K: tl.constexpr, D_V: tl.constexpr, PAD_K: tl.constexpr, PAD_V: tl.constexpr,
    CAUSAL: tl.constexpr, BAND: tl.constexpr, PRECISION: tl.constexpr, BLOCK_Q: tl.constexpr,
    BLOCK_KV: tl.constexpr, DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """dk and dv of one tile of keys of one key/value head, summed over the query heads that share
    it.
    """
    tile_count = tl.cdiv(n_kv, BLOCK_KV)
    tile, entry = tl.program_id(0) % tile_count, tl.program_id(0) // tile_count
    kv_heads = heads // group
    batch, kv_head = (entry // kv_heads).to(tl.int64), (entry % kv_heads).to(tl.int64)
    batch, q_first, kv_first, n_q, n_kv, offset, lse_rows = tiles.sequence(
        q_starts, kv_starts, batch, n_q, n_kv, packed_rows, offset
    )
    n_q = tl.where(tile * BLOCK_KV < n_kv, n_q, 0)  # no query sees tiles behind a sequence's end

    keys = tile * BLOCK_KV + tl.arange(0, BLOCK_KV)
    valid = tiles.valid_keys(keys, n_kv, key_mask, key_mask_strides, batch)
    k_tile = tiles.load_own(k, k_strides, batch, kv_head, kv_first, keys, valid, D_K, PAD_K)
    v_tile = tiles.load_own(v, v_strides, batch, kv_head, kv_first, keys, valid, D_V, PAD_V)
    q_offsets = tiles.tile_offsets(tl.arange(0, BLOCK_Q), q_strides, PAD_K)
    do_offsets = tiles.tile_offsets(tl.arange(0, BLOCK_Q), do_strides, PAD_V)
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
        first = tiles.band_start(tile * BLOCK_KV, window, BAND) - offset
        first = tl.maximum(first, 0) // BLOCK_Q * BLOCK_Q
        whole = tiles.band_start(last_key, window, BAND) - offset
        whole = tl.cdiv(tl.maximum(whole, 0), BLOCK_Q) * BLOCK_Q
    end = tl.cdiv(n_q, BLOCK_Q) * BLOCK_Q
    if window is not None:
        last = tl.maximum(tiles.band_end(last_key, window, BAND) - offset, 0)
        end = tl.minimum(tl.cdiv(last, BLOCK_Q) * BLOCK_Q, end)
        last_whole = tl.maximum(tiles.band_end(tile * BLOCK_KV, window, BAND) - offset, 0)
        whole_end = tl.minimum(last_whole // BLOCK_Q * BLOCK_Q, whole_end)
    before = tl.maximum(tl.minimum(whole, end) - first, 0) // BLOCK_Q
    behind = tl.maximum(end - tl.maximum(whole_end, whole), 0) // BLOCK_Q
    edges = before + behind
    blocks = tl.maximum(whole_end - whole, 0) // BLOCK_Q
    # A loop counts heads and blocks: nested loops would hold twice the registers.
    for part in tl.static_range(2):  # blocks that see all of these keys, and those on an edge
        count = blocks if part == 0 else edges
        if count > 0:
            for step in range(group * count):
                head, block = kv_head * group + step // count, step % count
                if part == 0:
                    start = whole + block * BLOCK_Q
                else:
                    later = tl.maximum(whole_end, whole) + (block - before) * BLOCK_Q
                    start = tl.where(block < before, first + block * BLOCK_Q, later)
                rows = start + tl.arange(0, BLOCK_Q)
                inside, first_row = rows < n_q, (batch * heads + head) * lse_rows + q_first
                q_at = tiles.head_start(q, q_strides, batch, head, q_first, DESCRIPTORS)
                do_at = tiles.head_start(do, do_strides, batch, head, q_first, DESCRIPTORS)
                q_tile = tiles.load_rows(
                    q_at, batch, head, start, q_strides, q_offsets, inside, D_K, part == 1,
                    DESCRIPTORS,
                )  # fmt: skip
                # With descriptors lse is at hand before the scores are, and the product for dp
                # begins before the exponentials, which then run beside it. By pointers that takes
                # too many registers.
                if DESCRIPTORS:
                    lse_tile = load_lse(lse + first_row, rows, inside, part == 1)
                    do_tile = tiles.load_rows(
                        do_at, batch, head, start, do_strides, do_offsets, inside, D_V, part == 1,
                        DESCRIPTORS,
                    )  # fmt: skip
                kq = tl.dot(k_tile, tl.trans(q_tile), input_precision=PRECISION)  # [keys, queries]
                if DESCRIPTORS:
                    dp = tl.dot(v_tile, tl.trans(do_tile), input_precision=PRECISION)
                kq = tiles.capped(kq, cap_factor, q_tile.dtype == tl.float32)
                if part == 1 and (CAUSAL or window is not None):
                    positions = (rows + offset)[None, :]
                    seen = tiles.visible(positions, keys[:, None], window, CAUSAL, BAND)
                    kq = tl.where(seen, kq, -tiles.INFINITY)
                if not DESCRIPTORS:
                    lse_tile = load_lse(lse + first_row, rows, inside, True)
                p = tl.exp2(kq * scale_log2 - lse_tile[None, :])
                if not DESCRIPTORS:
                    do_tile = tiles.load_rows(
                        do_at, batch, head, start, do_strides, do_offsets, inside, D_V, part == 1,
                        DESCRIPTORS,
                    )  # fmt: skip
                p_tile = p.to(do_tile.dtype)
                dv_tile = tl.dot(p_tile, do_tile, dv_tile, input_precision=PRECISION)
                if not DESCRIPTORS:
                    dp = tl.dot(v_tile, tl.trans(do_tile), input_precision=PRECISION)
                if part == 1 or not DESCRIPTORS:
                    delta_tile = tl.load(delta + first_row + rows, mask=inside, other=0.0)
                else:
                    delta_tile = tl.load(delta + first_row + rows)
                ds = uncapped_gradient(p * (dp - delta_tile[None, :]), kq, cap_factor)
                ds = ds.to(q_tile.dtype)
                dk_tile = tl.dot(ds, q_tile, dk_tile, input_precision=PRECISION)
    # Masked keys read as zero above, which leaves meaningless numbers in their rows.
    dk_tile = tl.where(valid[:, None], dk_tile * scale, 0.0)
    dv_tile = tl.where(valid[:, None], dv_tile, 0.0)
    tiles.store_own(dk, dk_strides, batch, kv_head, kv_first, keys, keys < n_kv, dk_tile, D_K)
    tiles.store_own(dv, dv_strides, batch, kv_head, kv_first, keys, keys < n_kv, dv_tile, D_V)
