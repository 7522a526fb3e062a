"""Attention in tiles with an online softmax, forward and backward, in Triton.

Follows Dao 2023, FlashAttention-2, and uses its names: m_i is the running maximum of the scores,
l_i the running sum of their exponentials, acc the unnormalized output, alpha the factor that
rescales both sums. Written from scratch for this project. One program owns one tile of queries (or,
for the gradients of keys and values, of keys) and iterates over the other side. Blocks that every
query of the tile sees whole take a path without masks; those on the causal edge and at the end take
another. There are no atomic additions, so results are the same from run to run. The softmax works
with powers of 2: scores have a factor log2(e).

A tensor's `*_strides` are [batch, head, row, column], in elements, of any size: offsets are 64 bits
wide. `key_mask` has one byte per key, or is None. `lse` is the log-sum-exp of the scaled scores to
base 2, -inf for a query that sees no key, and `delta` the sum over columns of o * do; both are
[batch, heads, n_q], contiguous, fp32. Query i sees the keys j <= i + offset if CAUSAL. `group`
query heads share a key/value head. Widths that are not powers of two are padded with zeros (PAD_K,
PAD_V) in registers only.

The tensors that a program iterates over (k and v; in the last kernel q and do) are pointers or, if
DESCRIPTORS, tensor descriptors: from compute capability 9.0 on, one instruction then copies a whole
tile. WARP_SPECIALIZE gives these copies, the matrix products and the softmax to different warps.
"""

import triton
import triton.language as tl

LN_2 = tl.constexpr(0.6931471805599453)
INFINITY = tl.constexpr(float("inf"))
# Compiled for any value, so that a sweep over N compiles once.
SIZES = ["heads", "group", "n_q", "n_kv", "offset"]


@triton.jit
def tile_offsets(rows, strides, PAD: tl.constexpr):
    """Offsets of the elements of a tile, [rows, PAD]."""
    row_offsets = rows[:, None].to(tl.int64) * strides[2]
    return row_offsets + tl.arange(0, PAD)[None, :].to(tl.int64) * strides[3]


@triton.jit
def head_start(x, batch, head, strides, DESCRIPTORS: tl.constexpr):
    """Pointer to a head's first element; a descriptor covers all heads."""
    if not DESCRIPTORS:
        x += batch * strides[0] + head * strides[1]
    return x


@triton.jit
def load_rows(
    x, batch, head, start, strides, offsets, valid,
    WIDTH: tl.constexpr, GUARDED: tl.constexpr, DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """The tile whose first row is `start`. A descriptor reads zero beyond the edges."""
    if DESCRIPTORS:
        tile = x.load([batch.to(tl.int32), head.to(tl.int32), start, 0]).reshape(
            offsets.shape[0], offsets.shape[1]
        )
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
def store_tile(base, offsets, valid, tile, WIDTH: tl.constexpr):
    inside = valid[:, None] & (tl.arange(0, offsets.shape[1]) < WIDTH)[None, :]
    tl.store(base + offsets, tile.to(base.dtype.element_ty), mask=inside)


@triton.jit
def key_range(first_row, last_row, offset, n_kv, CAUSAL: tl.constexpr, BLOCK_KV: tl.constexpr):
    """Bounds for the queries first_row..last_row: all of them see the keys before the first bound,
    none sees a key from the second on.
    """
    if CAUSAL:
        whole = tl.minimum(tl.maximum(first_row + offset + 1, 0), n_kv)
        end = tl.minimum(tl.maximum(last_row + offset + 1, 0), n_kv)
    else:
        whole = n_kv
        end = n_kv
    return whole // BLOCK_KV * BLOCK_KV, end


@triton.jit
def valid_keys(keys, n_kv, key_mask, key_mask_stride, MASKED: tl.constexpr):
    valid = keys < n_kv
    if MASKED:
        present = tl.load(key_mask + keys.to(tl.int64) * key_mask_stride, mask=valid, other=0)
        valid = valid & (present != 0)
    return valid


@triton.jit
def masked_scores(
    q_tile, k_tile, rows, keys, valid, offset,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr, EDGE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Q K^T, [queries, keys]; -inf for masked pairs."""
    qk = tl.dot(q_tile, tl.trans(k_tile), input_precision=PRECISION)
    if EDGE or MASKED:
        seen = valid[None, :]
        if EDGE and CAUSAL:
            seen = seen & (keys[None, :] <= (rows + offset)[:, None])
        qk = tl.where(seen, qk, -INFINITY)
    return qk


@triton.jit
def attend_keys(
    acc, l_i, m_i, q_tile, k, v, key_mask, batch, kv_head, k_offsets, v_offsets, k_strides,
    v_strides, key_mask_stride, rows, n_kv, offset, scale_log2, first, last,
    D_K: tl.constexpr, D_V: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr,
    EDGE: tl.constexpr, PRECISION: tl.constexpr, BLOCK_KV: tl.constexpr, DESCRIPTORS: tl.constexpr,
    WARP_SPECIALIZE: tl.constexpr,
):  # fmt: skip
    """The online softmax over the keys first..last-1."""
    for start in tl.range(first, last, BLOCK_KV, warp_specialize=WARP_SPECIALIZE):
        keys = start + tl.arange(0, BLOCK_KV)
        valid = valid_keys(keys, n_kv, key_mask, key_mask_stride, MASKED)
        k_tile = load_rows(
            k, batch, kv_head, start, k_strides, k_offsets, valid, D_K, EDGE or MASKED, DESCRIPTORS
        )
        qk = masked_scores(
            q_tile, k_tile, rows, keys, valid, offset, CAUSAL, MASKED, EDGE, PRECISION
        )
        m_ij = tl.maximum(m_i, tl.max(qk, 1) * scale_log2)
        # A query that has seen no key yet would give inf - inf.
        shift = tl.where(m_ij == -INFINITY, 0.0, m_ij) if EDGE or MASKED else m_ij
        p = tl.exp2(qk * scale_log2 - shift[:, None])
        alpha = tl.exp2(m_i - shift)
        l_i = l_i * alpha + tl.sum(p, 1)
        v_tile = load_rows(
            v, batch, kv_head, start, v_strides, v_offsets, valid, D_V, EDGE or MASKED, DESCRIPTORS
        )
        acc = tl.dot(p.to(v_tile.dtype), v_tile, acc * alpha[:, None], input_precision=PRECISION)
        m_i = m_ij
    return acc, l_i, m_i


@triton.jit(do_not_specialize=SIZES)
def forward_kernel(
    q, k, v, key_mask, o, lse, q_strides, k_strides, v_strides, key_mask_strides, o_strides,
    heads, group, n_q, n_kv, offset, scale_log2,
    D_K: tl.constexpr, D_V: tl.constexpr, PAD_K: tl.constexpr, PAD_V: tl.constexpr,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr, PRECISION: tl.constexpr, BLOCK_Q: tl.constexpr,
    BLOCK_KV: tl.constexpr, DESCRIPTORS: tl.constexpr, WARP_SPECIALIZE: tl.constexpr,
):  # fmt: skip
    """Output and log-sum-exp of one tile of queries of one head."""
    tiles = tl.cdiv(n_q, BLOCK_Q)
    tile, entry = tl.program_id(0) % tiles, tl.program_id(0) // tiles
    if CAUSAL:
        tile = tiles - 1 - tile  # the longest rows first, so that no long one is left at the end
    batch, head = (entry // heads).to(tl.int64), (entry % heads).to(tl.int64)
    q = head_start(q, batch, head, q_strides, WARP_SPECIALIZE)
    kv_head = head // group
    k = head_start(k, batch, kv_head, k_strides, DESCRIPTORS)
    v = head_start(v, batch, kv_head, v_strides, DESCRIPTORS)
    o += batch * o_strides[0] + head * o_strides[1]
    if MASKED:
        key_mask += batch * key_mask_strides[0]
    lse += entry.to(tl.int64) * n_q

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
    last_row = tl.minimum(tile * BLOCK_Q + BLOCK_Q, n_q) - 1
    whole, end = key_range(tile * BLOCK_Q, last_row, offset, n_kv, CAUSAL, BLOCK_KV)
    key_mask_stride = key_mask_strides[1] if MASKED else 0
    if WARP_SPECIALIZE:  # a single loop: with two, causal problems spill registers
        whole = 0
    if whole > 0:
        acc, l_i, m_i = attend_keys(
            acc, l_i, m_i, q_tile, k, v, key_mask, batch, kv_head, k_offsets, v_offsets, k_strides,
            v_strides, key_mask_stride, rows, n_kv, offset, scale_log2, 0, whole,
            D_K, D_V, CAUSAL, MASKED, False, PRECISION, BLOCK_KV, DESCRIPTORS, WARP_SPECIALIZE,
        )  # fmt: skip
    if WARP_SPECIALIZE or whole < end:
        acc, l_i, m_i = attend_keys(
            acc, l_i, m_i, q_tile, k, v, key_mask, batch, kv_head, k_offsets, v_offsets, k_strides,
            v_strides, key_mask_stride, rows, n_kv, offset, scale_log2, whole, end,
            D_K, D_V, CAUSAL, MASKED, True, PRECISION, BLOCK_KV, DESCRIPTORS, WARP_SPECIALIZE,
        )  # fmt: skip
    empty = l_i == 0.0
    acc = acc / tl.where(empty, 1.0, l_i)[:, None]
    store_tile(o, tile_offsets(rows, o_strides, PAD_V), rows < n_q, acc, D_V)
    lse += rows
    tl.store(
        lse, tl.where(empty, -INFINITY, m_i + tl.log2(tl.where(empty, 1.0, l_i))), mask=rows < n_q
    )


@triton.jit
def load_lse(lse, rows, valid):
    """+inf for queries that see no key, so that their weights are exp2(-inf) = 0."""
    loaded = tl.load(lse + rows, mask=valid, other=INFINITY)
    return tl.where(loaded == -INFINITY, INFINITY, loaded)


@triton.jit
def add_keys_to_dq(
    dq_tile, q_tile, do_tile, lse_tile, delta_tile, k, v, key_mask, batch, kv_head, k_offsets,
    v_offsets, k_strides, v_strides, key_mask_stride, rows, n_kv, offset, scale_log2, first, last,
    D_K: tl.constexpr, D_V: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr,
    EDGE: tl.constexpr, PRECISION: tl.constexpr, BLOCK_KV: tl.constexpr, DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """dq with what the keys first..last-1 contribute to it."""
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
            q_tile, k_tile, rows, keys, valid, offset, CAUSAL, MASKED, EDGE, PRECISION
        )
        p = tl.exp2(qk * scale_log2 - lse_tile[:, None])
        dp = tl.dot(do_tile, tl.trans(v_tile), input_precision=PRECISION)
        ds = p * (dp - delta_tile[:, None])
        dq_tile = tl.dot(ds.to(k_tile.dtype), k_tile, dq_tile, input_precision=PRECISION)
    return dq_tile


@triton.jit(do_not_specialize=SIZES)
def grad_q_kernel(
    q, k, v, key_mask, o, do, lse, delta, dq, q_strides, k_strides, v_strides, key_mask_strides,
    o_strides, do_strides, dq_strides, heads, group, n_q, n_kv, offset, scale_log2,
    D_K: tl.constexpr, D_V: tl.constexpr, PAD_K: tl.constexpr, PAD_V: tl.constexpr,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr, PRECISION: tl.constexpr, BLOCK_Q: tl.constexpr,
    BLOCK_KV: tl.constexpr, DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """dq of one tile of queries of one head; also delta, which so takes no pass over o and do."""
    tiles = tl.cdiv(n_q, BLOCK_Q)
    tile, entry = tl.program_id(0) % tiles, tl.program_id(0) // tiles
    if CAUSAL:
        tile = tiles - 1 - tile
    batch, head = (entry // heads).to(tl.int64), (entry % heads).to(tl.int64)
    q += batch * q_strides[0] + head * q_strides[1]
    kv_head = head // group
    k = head_start(k, batch, kv_head, k_strides, DESCRIPTORS)
    v = head_start(v, batch, kv_head, v_strides, DESCRIPTORS)
    o += batch * o_strides[0] + head * o_strides[1]
    do += batch * do_strides[0] + head * do_strides[1]
    dq += batch * dq_strides[0] + head * dq_strides[1]
    if MASKED:
        key_mask += batch * key_mask_strides[0]
    lse += entry.to(tl.int64) * n_q
    delta += entry.to(tl.int64) * n_q

    rows = tile * BLOCK_Q + tl.arange(0, BLOCK_Q)
    valid = rows < n_q
    o_tile = load_tile(o, tile_offsets(rows, o_strides, PAD_V), valid, D_V, True)
    do_tile = load_tile(do, tile_offsets(rows, do_strides, PAD_V), valid, D_V, True)
    delta_tile = tl.sum(o_tile.to(tl.float32) * do_tile.to(tl.float32), 1)
    tl.store(delta + rows, delta_tile, mask=valid)
    q_tile = load_tile(q, tile_offsets(rows, q_strides, PAD_K), valid, D_K, True)
    lse_tile = load_lse(lse, rows, valid)
    k_offsets = tile_offsets(tl.arange(0, BLOCK_KV), k_strides, PAD_K)
    v_offsets = tile_offsets(tl.arange(0, BLOCK_KV), v_strides, PAD_V)
    dq_tile = tl.zeros([BLOCK_Q, PAD_K], dtype=tl.float32)
    last_row = tl.minimum(tile * BLOCK_Q + BLOCK_Q, n_q) - 1
    whole, end = key_range(tile * BLOCK_Q, last_row, offset, n_kv, CAUSAL, BLOCK_KV)
    key_mask_stride = key_mask_strides[1] if MASKED else 0
    if whole > 0:
        dq_tile = add_keys_to_dq(
            dq_tile, q_tile, do_tile, lse_tile, delta_tile, k, v, key_mask, batch, kv_head,
            k_offsets, v_offsets, k_strides, v_strides, key_mask_stride, rows, n_kv, offset,
            scale_log2, 0, whole, D_K, D_V, CAUSAL, MASKED, False, PRECISION, BLOCK_KV, DESCRIPTORS,
        )  # fmt: skip
    if whole < end:
        dq_tile = add_keys_to_dq(
            dq_tile, q_tile, do_tile, lse_tile, delta_tile, k, v, key_mask, batch, kv_head,
            k_offsets, v_offsets, k_strides, v_strides, key_mask_stride, rows, n_kv, offset,
            scale_log2, whole, end, D_K, D_V, CAUSAL, MASKED, True, PRECISION, BLOCK_KV,
            DESCRIPTORS,
        )  # fmt: skip
    offsets = tile_offsets(rows, dq_strides, PAD_K)
    store_tile(dq, offsets, valid, dq_tile * (scale_log2 * LN_2), D_K)


@triton.jit
def add_queries_to_dk_dv(
    dk_tile, dv_tile, k_tile, v_tile, keys, q, do, lse, delta, q_offsets, do_offsets, q_strides,
    do_strides, batch, head, heads, start, n_q, offset, scale_log2,
    D_K: tl.constexpr, D_V: tl.constexpr, CAUSAL: tl.constexpr, EDGE: tl.constexpr,
    PRECISION: tl.constexpr, BLOCK_Q: tl.constexpr, DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """dk and dv with what one block of queries contributes. Transposed: keys are rows."""
    q = head_start(q, batch, head, q_strides, DESCRIPTORS)
    do = head_start(do, batch, head, do_strides, DESCRIPTORS)
    lse += (batch * heads + head) * n_q
    delta += (batch * heads + head) * n_q
    rows = start + tl.arange(0, BLOCK_Q)
    valid = rows < n_q
    q_tile = load_rows(q, batch, head, start, q_strides, q_offsets, valid, D_K, EDGE, DESCRIPTORS)
    kq = tl.dot(k_tile, tl.trans(q_tile), input_precision=PRECISION)  # [keys, queries]
    if EDGE and CAUSAL:
        kq = tl.where(keys[:, None] <= (rows + offset)[None, :], kq, -INFINITY)
    p = tl.exp2(kq * scale_log2 - load_lse(lse, rows, valid)[None, :])
    do_tile = load_rows(
        do, batch, head, start, do_strides, do_offsets, valid, D_V, EDGE, DESCRIPTORS
    )
    dv_tile = tl.dot(p.to(do_tile.dtype), do_tile, dv_tile, input_precision=PRECISION)
    dp = tl.dot(v_tile, tl.trans(do_tile), input_precision=PRECISION)
    ds = p * (dp - tl.load(delta + rows, mask=valid, other=0.0)[None, :])
    dk_tile = tl.dot(ds.to(q_tile.dtype), q_tile, dk_tile, input_precision=PRECISION)
    return dk_tile, dv_tile


@triton.jit(do_not_specialize=SIZES)
def grad_kv_kernel(
    q, k, v, key_mask, do, lse, delta, dk, dv, q_strides, k_strides, v_strides, key_mask_strides,
    do_strides, dk_strides, dv_strides, heads, group, n_q, n_kv, offset, scale_log2,
    D_K: tl.constexpr, D_V: tl.constexpr, PAD_K: tl.constexpr, PAD_V: tl.constexpr,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr, PRECISION: tl.constexpr, BLOCK_Q: tl.constexpr,
    BLOCK_KV: tl.constexpr, DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """dk and dv of one tile of keys of one key/value head, summed over the query heads that share
    it.
    """
    tiles = tl.cdiv(n_kv, BLOCK_KV)
    tile, entry = tl.program_id(0) % tiles, tl.program_id(0) // tiles
    kv_heads = heads // group
    batch, kv_head = (entry // kv_heads).to(tl.int64), (entry % kv_heads).to(tl.int64)
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

    # Queries before `first` see none of these keys, those from `whole` on see all of them; all
    # three are multiples of BLOCK_Q.
    first, whole, full_end = 0, 0, n_q // BLOCK_Q * BLOCK_Q
    if CAUSAL:
        last_key = tl.minimum(tile * BLOCK_KV + BLOCK_KV, n_kv) - 1
        first = tl.maximum(tile * BLOCK_KV - offset, 0) // BLOCK_Q * BLOCK_Q
        whole = tl.cdiv(tl.maximum(last_key - offset, 0), BLOCK_Q) * BLOCK_Q
    end = tl.cdiv(n_q, BLOCK_Q) * BLOCK_Q
    diagonal = tl.maximum(tl.minimum(whole, end) - first, 0) // BLOCK_Q
    # The blocks on the diagonal, and the last one if it is not full.
    edges = diagonal + tl.where((whole < end) & (full_end < n_q), 1, 0)
    blocks = tl.maximum(full_end - whole, 0) // BLOCK_Q
    # One loop counts heads and blocks: nested loops would hold twice the registers.
    if blocks > 0:
        for step in range(group * blocks):
            head = kv_head * group + step // blocks
            dk_tile, dv_tile = add_queries_to_dk_dv(
                dk_tile, dv_tile, k_tile, v_tile, keys, q, do, lse, delta, q_offsets, do_offsets,
                q_strides, do_strides, batch, head, heads, whole + step % blocks * BLOCK_Q, n_q,
                offset, scale_log2, D_K, D_V, CAUSAL, False, PRECISION, BLOCK_Q, DESCRIPTORS,
            )  # fmt: skip
    if edges > 0:
        for step in range(group * edges):
            head, edge = kv_head * group + step // edges, step % edges
            start = tl.where(edge < diagonal, first + edge * BLOCK_Q, full_end)
            dk_tile, dv_tile = add_queries_to_dk_dv(
                dk_tile, dv_tile, k_tile, v_tile, keys, q, do, lse, delta, q_offsets, do_offsets,
                q_strides, do_strides, batch, head, heads, start, n_q, offset,
                scale_log2, D_K, D_V, CAUSAL, True, PRECISION, BLOCK_Q, DESCRIPTORS,
            )  # fmt: skip
    # Masked keys read as zero above, which leaves meaningless numbers in their rows.
    dk_tile = tl.where(valid[:, None], dk_tile * (scale_log2 * LN_2), 0.0)
    dv_tile = tl.where(valid[:, None], dv_tile, 0.0)
    store_tile(dk, tile_offsets(keys, dk_strides, PAD_K), keys < n_kv, dk_tile, D_K)
    store_tile(dv, tile_offsets(keys, dv_strides, PAD_V), keys < n_kv, dv_tile, D_V)
