"""Output and log-sum-exp."""

import triton
import triton.language as tl

from . import tiles


@triton.jit(do_not_specialize=tiles.SIZES)
def forward_kernel(
    q, k, v, key_mask, q_starts, kv_starts, page_table, sinks, o, lse, q_strides, k_strides,
    v_strides, key_mask_strides, o_strides, heads, group, n_q, n_kv, packed_rows, offset, window,
    scale_log2, cap_factor,
    D_K: tl.constexpr, D_V: tl.constexpr, PAD_K: tl.constexpr, PAD_V: tl.constexpr,
    CAUSAL: tl.constexpr, BAND: tl.constexpr, PRECISION: tl.constexpr, BLOCK_Q: tl.constexpr,
    BLOCK_KV: tl.constexpr, DESCRIPTORS: tl.constexpr, PAGE: tl.constexpr,
):  # fmt: skip
    """Output and log-sum-exp of one tile of queries of one head."""
    tile_count = tl.cdiv(n_q, BLOCK_Q)
    tile, entry = tl.program_id(0) % tile_count, tl.program_id(0) // tile_count
    if CAUSAL:
        tile = tile_count - 1 - tile  # the longest first: no long one is left at the end
    batch, head = (entry // heads).to(tl.int64), (entry % heads).to(tl.int64)
    batch, q_first, kv_first, n_q, n_kv, offset, lse_rows = tiles.sequence(
        q_starts, kv_starts, batch, n_q, n_kv, packed_rows, offset
    )
    n_kv = tl.where(tile * BLOCK_Q < n_q, n_kv, 0)  # tiles behind a sequence's end see nothing
    kv_head = head // group
    pool = batch
    if page_table is not None:
        page_table += batch * tl.cdiv(n_kv, PAGE)
        pool = batch * 0  # which all sequences share
    k = tiles.head_start(k, k_strides, pool, kv_head, kv_first, DESCRIPTORS)
    v = tiles.head_start(v, v_strides, pool, kv_head, kv_first, DESCRIPTORS)
    lse += (batch * heads + head) * lse_rows + q_first

    rows = tile * BLOCK_Q + tl.arange(0, BLOCK_Q)
    q_tile = tiles.load_own(q, q_strides, batch, head, q_first, rows, rows < n_q, D_K, PAD_K)
    k_offsets = tiles.tile_offsets(tl.arange(0, BLOCK_KV), k_strides, PAD_K)
    v_offsets = tiles.tile_offsets(tl.arange(0, BLOCK_KV), v_strides, PAD_V)
    acc = tl.zeros([BLOCK_Q, PAD_V], dtype=tl.float32)
    l_i = tl.zeros([BLOCK_Q], dtype=tl.float32)
    m_i = tl.full([BLOCK_Q], -tiles.INFINITY, dtype=tl.float32)
    if sinks is not None:  # as a key of this score, whose value is zero
        m_i = l_i + tl.load(sinks + head).to(tl.float32) * tiles.LOG2_E
        l_i += 1.0
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
                    valid = tiles.valid_keys(keys, n_kv, key_mask, key_mask_strides, batch)
                    k_tile = tiles.load_rows(
                        k, pool, kv_head, key, k_strides, k_offsets, valid, D_K,
                        part != 1 or key_mask is not None, DESCRIPTORS, page_table, PAGE,
                    )  # fmt: skip
                    qk = tiles.masked_scores(
                        q_tile, k_tile, rows, keys, valid, offset, window, cap_factor,
                        CAUSAL, BAND, part != 1, part != 1 or key_mask is not None, PRECISION,
                    )  # fmt: skip
                    m_ij = tl.maximum(m_i, tl.max(qk, 1) * scale_log2)
                    # A query that has seen no key yet would give inf - inf.
                    shift = m_ij
                    if part != 1 or key_mask is not None:
                        shift = tl.where(m_ij == -tiles.INFINITY, 0.0, m_ij)
                    p = tl.exp2(qk * scale_log2 - shift[:, None])
                    alpha = tl.exp2(m_i - shift)
                    l_i = l_i * alpha + tl.sum(p, 1)
                    v_tile = tiles.load_rows(
                        v, pool, kv_head, key, v_strides, v_offsets, valid, D_V,
                        part != 1 or key_mask is not None, DESCRIPTORS, page_table, PAGE,
                    )  # fmt: skip
                    p = p.to(v_tile.dtype)
                    acc = tl.dot(p, v_tile, acc * alpha[:, None], input_precision=PRECISION)
                    m_i = m_ij
    l_i = tl.where(l_i == 0.0, 1.0, l_i)  # a query that sees no key: acc is 0, and m_i -inf
    acc = acc / l_i[:, None]
    tiles.store_own(o, o_strides, batch, head, q_first, rows, rows < n_q, acc, D_V)
    tl.store(lse + rows, m_i + tl.log2(l_i), mask=rows < n_q)
