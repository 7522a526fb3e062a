"""Output and log-sum-exp."""

import triton
import triton.language as tl

from .tiles import (
    INFINITY,
    LOG2_E,
    SIZES,
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
def attend_keys(
    acc, l_i, m_i, q_tile, k, v, key_mask, batch, kv_head, k_offsets, v_offsets, k_strides,
    v_strides, key_mask_stride, page_table, rows, n_kv, offset, window, scale_log2, cap_factor,
    first, last,
    D_K: tl.constexpr, D_V: tl.constexpr, CAUSAL: tl.constexpr, BAND: tl.constexpr,
    MASKED: tl.constexpr, EDGE: tl.constexpr, PRECISION: tl.constexpr, BLOCK_KV: tl.constexpr,
    DESCRIPTORS: tl.constexpr, WARP_SPECIALIZE: tl.constexpr, PAGE: tl.constexpr,
):  # fmt: skip
    """The online softmax over the keys first..last-1."""
    for start in tl.range(first, last, BLOCK_KV, warp_specialize=WARP_SPECIALIZE):
        keys = start + tl.arange(0, BLOCK_KV)
        valid = valid_keys(keys, n_kv, key_mask, key_mask_stride, MASKED)
        k_tile = load_rows(
            k, batch, kv_head, start, k_strides, k_offsets, valid, D_K, EDGE or MASKED, DESCRIPTORS,
            page_table, PAGE,
        )  # fmt: skip
        qk = masked_scores(
            q_tile, k_tile, rows, keys, valid, offset, window, cap_factor,
            CAUSAL, BAND, MASKED, EDGE, PRECISION,
        )  # fmt: skip
        m_ij = tl.maximum(m_i, tl.max(qk, 1) * scale_log2)
        # A query that has seen no key yet would give inf - inf.
        shift = tl.where(m_ij == -INFINITY, 0.0, m_ij) if EDGE or MASKED else m_ij
        p = tl.exp2(qk * scale_log2 - shift[:, None])
        alpha = tl.exp2(m_i - shift)
        l_i = l_i * alpha + tl.sum(p, 1)
        v_tile = load_rows(
            v, batch, kv_head, start, v_strides, v_offsets, valid, D_V, EDGE or MASKED, DESCRIPTORS,
            page_table, PAGE,
        )  # fmt: skip
        acc = tl.dot(p.to(v_tile.dtype), v_tile, acc * alpha[:, None], input_precision=PRECISION)
        m_i = m_ij
    return acc, l_i, m_i


@triton.jit(do_not_specialize=SIZES)
def forward_kernel(
    q, k, v, key_mask, q_starts, kv_starts, page_table, sinks, o, lse, q_strides, k_strides,
    v_strides, key_mask_strides, o_strides, heads, group, n_q, n_kv, packed_rows, offset, window,
    scale_log2, cap_factor,
    D_K: tl.constexpr, D_V: tl.constexpr, PAD_K: tl.constexpr, PAD_V: tl.constexpr,
    CAUSAL: tl.constexpr, BAND: tl.constexpr, MASKED: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr, DESCRIPTORS: tl.constexpr,
    WARP_SPECIALIZE: tl.constexpr, PAGE: tl.constexpr,
):  # fmt: skip
    """Output and log-sum-exp of one tile of queries of one head."""
    tiles = tl.cdiv(n_q, BLOCK_Q)
    tile, entry = tl.program_id(0) % tiles, tl.program_id(0) // tiles
    if CAUSAL:
        tile = tiles - 1 - tile  # the longest rows first, so that no long one is left at the end
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
        lse += q_first
    q = head_start(q, batch, head, q_strides, WARP_SPECIALIZE)
    kv_head = head // group
    pool = batch
    if page_table is not None:
        page_table += batch * tl.cdiv(n_kv, PAGE)
        pool = batch * 0  # which all sequences share
    k = head_start(k, pool, kv_head, k_strides, DESCRIPTORS)
    v = head_start(v, pool, kv_head, v_strides, DESCRIPTORS)
    o += batch * o_strides[0] + head * o_strides[1]
    if MASKED:
        key_mask += batch * key_mask_strides[0]
    lse += entry.to(tl.int64) * lse_rows

    rows = tile * BLOCK_Q + tl.arange(0, BLOCK_Q)
    if WARP_SPECIALIZE:
        q_tile = q.load([batch.to(tl.int32), head.to(tl.int32), tile * BLOCK_Q, 0])
        q_tile = q_tile.reshape(BLOCK_Q, PAD_K)
    else:
        q_tile = load_tile(q, tile_offsets(rows, q_strides, PAD_K), rows < n_q, D_K, True)
    k_offsets = tile_offsets(tl.arange(0, BLOCK_KV), k_strides, PAD_K)
    v_offsets = tile_offsets(tl.arange(0, BLOCK_KV), v_strides, PAD_V)
    acc = tl.zeros([BLOCK_Q, PAD_V], dtype=tl.float32)
    l_i = tl.zeros([BLOCK_Q], dtype=tl.float32)
    m_i = tl.full([BLOCK_Q], -INFINITY, dtype=tl.float32)
    if sinks is not None:  # as a key of this score, whose value is zero
        m_i = tl.zeros([BLOCK_Q], dtype=tl.float32) + tl.load(sinks + head).to(tl.float32) * LOG2_E
        l_i += 1.0
    last_row = tl.minimum(tile * BLOCK_Q + BLOCK_Q, n_q) - 1
    start, inner, whole, end = key_range(
        tile * BLOCK_Q, last_row, offset, n_kv, window, CAUSAL, BAND, BLOCK_KV
    )
    key_mask_stride = key_mask_strides[1] if MASKED else 0
    if WARP_SPECIALIZE:  # a single loop: with two, causal problems spill registers
        inner, whole = start, start
    if window is not None and start < inner:
        acc, l_i, m_i = attend_keys(
            acc, l_i, m_i, q_tile, k, v, key_mask, batch, kv_head, k_offsets, v_offsets, k_strides,
            v_strides, key_mask_stride, page_table, rows, n_kv, offset, window, scale_log2,
            cap_factor, start, inner, D_K, D_V, CAUSAL, BAND, MASKED, True, PRECISION, BLOCK_KV,
            DESCRIPTORS, WARP_SPECIALIZE, PAGE,
        )  # fmt: skip
    if whole > inner:
        acc, l_i, m_i = attend_keys(
            acc, l_i, m_i, q_tile, k, v, key_mask, batch, kv_head, k_offsets, v_offsets, k_strides,
            v_strides, key_mask_stride, page_table, rows, n_kv, offset, window, scale_log2,
            cap_factor, inner, whole, D_K, D_V, CAUSAL, BAND, MASKED, False, PRECISION, BLOCK_KV,
            DESCRIPTORS, WARP_SPECIALIZE, PAGE,
        )  # fmt: skip
    if WARP_SPECIALIZE or whole < end:
        acc, l_i, m_i = attend_keys(
            acc, l_i, m_i, q_tile, k, v, key_mask, batch, kv_head, k_offsets, v_offsets, k_strides,
            v_strides, key_mask_stride, page_table, rows, n_kv, offset, window, scale_log2,
            cap_factor, whole, end, D_K, D_V, CAUSAL, BAND, MASKED, True, PRECISION, BLOCK_KV,
            DESCRIPTORS, WARP_SPECIALIZE, PAGE,
        )  # fmt: skip
    empty = l_i == 0.0
    acc = acc / tl.where(empty, 1.0, l_i)[:, None]
    store_tile(o, tile_offsets(rows, o_strides, PAD_V), rows < n_q, acc, D_V)
    lse += rows
    tl.store(
        lse, tl.where(empty, -INFINITY, m_i + tl.log2(tl.where(empty, 1.0, l_i))), mask=rows < n_q
    )
