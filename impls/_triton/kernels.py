"""Attention in tiles with an online softmax, forward and backward (Dao 2023, FlashAttention-2), in
Triton.

Written anew for this project. One program owns one tile of queries (or, in the gradient of keys and
values, of keys) and walks over the other side. Blocks that every query of the tile sees whole take
a path without masks; those on the causal edge and at the end take another. Nothing is added
atomically, so results are the same from run to run. Softmax works with powers of 2: scores carry a
factor log2(e).

Names: a tensor's `*_strides` are [batch, head, row, column], in elements, of any size: offsets are
64 bits wide. `keep` is the key mask, one byte per key, or None. `lse` is the log-sum-exp of the
scaled scores to base 2, -inf for a query that sees no key, and `delta` the sum over the columns of
output * its gradient; both [batch, heads, n_q], contiguous, fp32. Query i sees the keys j <= i +
offset if CAUSAL. `group` query heads share a key/value head. Widths that are no power of two are
padded with zeros (PAD_K, PAD_V) in registers only.

What a program walks over (keys and values; in the last kernel queries and the output's gradient) is
a pointer or, if DESCRIBED, a tensor descriptor: from compute capability 9.0 on, one instruction
then copies a whole tile. SPECIALIZED gives such copies, matrix products and the softmax to
different warps.
"""

import triton
import triton.language as tl

LN_2 = tl.constexpr(0.6931471805599453)
INFINITY = tl.constexpr(float("inf"))
SIZES = [
    "heads",
    "group",
    "n_q",
    "n_kv",
    "offset",
]  # compiled for any value, so that a sweep over N compiles once


@triton.jit
def tile_offsets(rows, strides, PAD: tl.constexpr):
    """Where the elements of a tile lie, [rows, PAD]."""
    return (
        rows[:, None].to(tl.int64) * strides[2]
        + tl.arange(0, PAD)[None, :].to(tl.int64) * strides[3]
    )


@triton.jit
def head_start(x, batch, head, strides, DESCRIBED: tl.constexpr):
    """Where a head begins; a descriptor stands for all heads."""
    if not DESCRIBED:
        x += batch * strides[0] + head * strides[1]
    return x


@triton.jit
def load_rows(
    x,
    batch,
    head,
    start,
    strides,
    offsets,
    live,
    WIDTH: tl.constexpr,
    GUARDED: tl.constexpr,
    DESCRIBED: tl.constexpr,
):
    """The tile whose first row is `start`, from a descriptor, which reads beyond the edges as zero,
    or from where the head begins.
    """
    if DESCRIBED:
        tile = x.load([batch.to(tl.int32), head.to(tl.int32), start, 0]).reshape(
            offsets.shape[0], offsets.shape[1]
        )
    else:
        tile = load_tile(x + tl.cast(start, tl.int64) * strides[2], offsets, live, WIDTH, GUARDED)
    return tile


@triton.jit
def load_tile(base, offsets, live, WIDTH: tl.constexpr, GUARDED: tl.constexpr):
    """Columns from WIDTH on and, if GUARDED, rows that are not live are never touched and read as
    zero.
    """
    if offsets.shape[1] != WIDTH:
        inside = (tl.arange(0, offsets.shape[1]) < WIDTH)[None, :]
        if GUARDED:
            inside = inside & live[:, None]
        tile = tl.load(base + offsets, mask=inside, other=0.0)
    elif GUARDED:
        tile = tl.load(base + offsets, mask=live[:, None], other=0.0)
    else:
        tile = tl.load(base + offsets)
    return tile


@triton.jit
def store_tile(base, offsets, live, tile, WIDTH: tl.constexpr):
    inside = live[:, None] & (tl.arange(0, offsets.shape[1]) < WIDTH)[None, :]
    tl.store(base + offsets, tile.to(base.dtype.element_ty), mask=inside)


@triton.jit
def key_range(first_row, last_row, offset, n_kv, CAUSAL: tl.constexpr, BLOCK_KV: tl.constexpr):
    """For queries first_row..last_row: keys before the first number are seen by all of them, from
    the second on by none.
    """
    if CAUSAL:
        whole = tl.minimum(tl.maximum(first_row + offset + 1, 0), n_kv)
        end = tl.minimum(tl.maximum(last_row + offset + 1, 0), n_kv)
    else:
        whole = n_kv
        end = n_kv
    return whole // BLOCK_KV * BLOCK_KV, end


@triton.jit
def live_keys(keys, n_kv, keep, keep_stride, MASKED: tl.constexpr):
    live = keys < n_kv
    if MASKED:
        live = live & (tl.load(keep + keys.to(tl.int64) * keep_stride, mask=live, other=0) != 0)
    return live


@triton.jit
def attend_keys(
    acc, total, top, q_tile, k, v, keep, batch, kv_head, k_offsets, v_offsets, k_strides, v_strides, keep_stride, rows, n_kv, offset,
    scale_log2, first, last, D_K: tl.constexpr, D_V: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr, EDGE: tl.constexpr,
    PRECISION: tl.constexpr, BLOCK_KV: tl.constexpr, DESCRIBED: tl.constexpr, SPECIALIZED: tl.constexpr,
):  # fmt: skip
    """The online softmax over the keys first..last-1: what was gathered so far is scaled down
    whenever a larger score turns up.
    """
    for start in tl.range(first, last, BLOCK_KV, warp_specialize=SPECIALIZED):
        keys = start + tl.arange(0, BLOCK_KV)
        live = live_keys(keys, n_kv, keep, keep_stride, MASKED)
        k_tile = load_rows(
            k, batch, kv_head, start, k_strides, k_offsets, live, D_K, EDGE or MASKED, DESCRIBED
        )
        s = tl.dot(q_tile, tl.trans(k_tile), input_precision=PRECISION)  # [queries, keys]
        if EDGE or MASKED:
            seen = live[None, :]
            if EDGE and CAUSAL:
                seen = seen & (keys[None, :] <= (rows + offset)[:, None])
            s = tl.where(seen, s, -INFINITY)
        larger = tl.maximum(top, tl.max(s, 1) * scale_log2)
        # A query that has seen no key yet would give inf - inf.
        reference = tl.where(larger == -INFINITY, 0.0, larger) if EDGE or MASKED else larger
        p = tl.exp2(s * scale_log2 - reference[:, None])
        shrink = tl.exp2(top - reference)
        total = total * shrink + tl.sum(p, 1)
        v_tile = load_rows(
            v, batch, kv_head, start, v_strides, v_offsets, live, D_V, EDGE or MASKED, DESCRIBED
        )
        acc = tl.dot(p.to(v_tile.dtype), v_tile, acc * shrink[:, None], input_precision=PRECISION)
        top = larger
    return acc, total, top


@triton.jit(do_not_specialize=SIZES)
def forward_kernel(
    q, k, v, keep, o, lse, q_strides, k_strides, v_strides, keep_strides, o_strides, heads, group, n_q, n_kv, offset, scale_log2,
    D_K: tl.constexpr, D_V: tl.constexpr, PAD_K: tl.constexpr, PAD_V: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr,
    PRECISION: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr, DESCRIBED: tl.constexpr, SPECIALIZED: tl.constexpr,
):  # fmt: skip
    """One tile of queries of one head: its output and log-sum-exp."""
    tiles = tl.cdiv(n_q, BLOCK_Q)
    tile, entry = tl.program_id(0) % tiles, tl.program_id(0) // tiles
    if CAUSAL:
        tile = tiles - 1 - tile  # the longest rows first, so that no long one is left at the end
    batch, head = (entry // heads).to(tl.int64), (entry % heads).to(tl.int64)
    q += batch * q_strides[0] + head * q_strides[1]
    kv_head = head // group
    k = head_start(k, batch, kv_head, k_strides, DESCRIBED)
    v = head_start(v, batch, kv_head, v_strides, DESCRIBED)
    o += batch * o_strides[0] + head * o_strides[1]
    if MASKED:
        keep += batch * keep_strides[0]
    lse += entry.to(tl.int64) * n_q

    rows = tile * BLOCK_Q + tl.arange(0, BLOCK_Q)
    q_tile = load_tile(q, tile_offsets(rows, q_strides, PAD_K), rows < n_q, D_K, True)
    k_offsets = tile_offsets(tl.arange(0, BLOCK_KV), k_strides, PAD_K)
    v_offsets = tile_offsets(tl.arange(0, BLOCK_KV), v_strides, PAD_V)
    acc = tl.zeros([BLOCK_Q, PAD_V], dtype=tl.float32)
    total = tl.zeros([BLOCK_Q], dtype=tl.float32)
    top = tl.full([BLOCK_Q], -INFINITY, dtype=tl.float32)
    last_row = tl.minimum(tile * BLOCK_Q + BLOCK_Q, n_q) - 1
    whole, end = key_range(tile * BLOCK_Q, last_row, offset, n_kv, CAUSAL, BLOCK_KV)
    keep_stride = keep_strides[1] if MASKED else 0
    acc, total, top = attend_keys(
        acc, total, top, q_tile, k, v, keep, batch, kv_head, k_offsets, v_offsets, k_strides, v_strides, keep_stride, rows, n_kv, offset,
        scale_log2, 0, whole, D_K, D_V, CAUSAL, MASKED, False, PRECISION, BLOCK_KV, DESCRIBED, SPECIALIZED,
    )  # fmt: skip
    acc, total, top = attend_keys(
        acc, total, top, q_tile, k, v, keep, batch, kv_head, k_offsets, v_offsets, k_strides, v_strides, keep_stride, rows, n_kv, offset,
        scale_log2, whole, end, D_K, D_V, CAUSAL, MASKED, True, PRECISION, BLOCK_KV, DESCRIBED, SPECIALIZED,
    )  # fmt: skip
    empty = total == 0.0
    acc = acc / tl.where(empty, 1.0, total)[:, None]
    store_tile(o, tile_offsets(rows, o_strides, PAD_V), rows < n_q, acc, D_V)
    tl.store(
        lse + rows,
        tl.where(empty, -INFINITY, top + tl.log2(tl.where(empty, 1.0, total))),
        mask=rows < n_q,
    )


@triton.jit
def load_lse(lse, rows, live):
    """+inf for queries that see no key: their weights then come out as exp2(-inf) = 0."""
    loaded = tl.load(lse + rows, mask=live, other=INFINITY)
    return tl.where(loaded == -INFINITY, INFINITY, loaded)


@triton.jit
def gather_grad_q(
    grad, q_tile, grad_o_tile, lse_tile, delta_tile, k, v, keep, batch, kv_head, k_offsets, v_offsets, k_strides, v_strides, keep_stride,
    rows, n_kv, offset, scale_log2, first, last, D_K: tl.constexpr, D_V: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr,
    EDGE: tl.constexpr, PRECISION: tl.constexpr, BLOCK_KV: tl.constexpr, DESCRIBED: tl.constexpr,
):  # fmt: skip
    for start in range(first, last, BLOCK_KV):
        keys = start + tl.arange(0, BLOCK_KV)
        live = live_keys(keys, n_kv, keep, keep_stride, MASKED)
        k_tile = load_rows(
            k, batch, kv_head, start, k_strides, k_offsets, live, D_K, EDGE or MASKED, DESCRIBED
        )
        v_tile = load_rows(
            v, batch, kv_head, start, v_strides, v_offsets, live, D_V, EDGE or MASKED, DESCRIBED
        )
        s = tl.dot(q_tile, tl.trans(k_tile), input_precision=PRECISION)  # [queries, keys]
        if EDGE or MASKED:
            seen = live[None, :]
            if EDGE and CAUSAL:
                seen = seen & (keys[None, :] <= (rows + offset)[:, None])
            s = tl.where(seen, s, -INFINITY)
        p = tl.exp2(s * scale_log2 - lse_tile[:, None])
        grad_p = tl.dot(grad_o_tile, tl.trans(v_tile), input_precision=PRECISION)
        grad_s = p * (grad_p - delta_tile[:, None])
        grad = tl.dot(grad_s.to(k_tile.dtype), k_tile, grad, input_precision=PRECISION)
    return grad


@triton.jit(do_not_specialize=SIZES)
def grad_q_kernel(
    q, k, v, keep, o, grad_o, lse, delta, grad_q, q_strides, k_strides, v_strides, keep_strides, o_strides, grad_o_strides, grad_q_strides,
    heads, group, n_q, n_kv, offset, scale_log2,
    D_K: tl.constexpr, D_V: tl.constexpr, PAD_K: tl.constexpr, PAD_V: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr,
    PRECISION: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr, DESCRIBED: tl.constexpr,
):  # fmt: skip
    """One tile of queries of one head: the gradient of q, and delta for the kernel that
    comes next.
    """
    tiles = tl.cdiv(n_q, BLOCK_Q)
    tile, entry = tl.program_id(0) % tiles, tl.program_id(0) // tiles
    if CAUSAL:
        tile = tiles - 1 - tile
    batch, head = (entry // heads).to(tl.int64), (entry % heads).to(tl.int64)
    q += batch * q_strides[0] + head * q_strides[1]
    kv_head = head // group
    k = head_start(k, batch, kv_head, k_strides, DESCRIBED)
    v = head_start(v, batch, kv_head, v_strides, DESCRIBED)
    o += batch * o_strides[0] + head * o_strides[1]
    grad_o += batch * grad_o_strides[0] + head * grad_o_strides[1]
    grad_q += batch * grad_q_strides[0] + head * grad_q_strides[1]
    if MASKED:
        keep += batch * keep_strides[0]
    lse += entry.to(tl.int64) * n_q
    delta += entry.to(tl.int64) * n_q

    rows = tile * BLOCK_Q + tl.arange(0, BLOCK_Q)
    live = rows < n_q
    o_tile = load_tile(o, tile_offsets(rows, o_strides, PAD_V), live, D_V, True)
    grad_o_tile = load_tile(grad_o, tile_offsets(rows, grad_o_strides, PAD_V), live, D_V, True)
    delta_tile = tl.sum(o_tile.to(tl.float32) * grad_o_tile.to(tl.float32), 1)
    tl.store(delta + rows, delta_tile, mask=live)
    q_tile = load_tile(q, tile_offsets(rows, q_strides, PAD_K), live, D_K, True)
    lse_tile = load_lse(lse, rows, live)
    k_offsets = tile_offsets(tl.arange(0, BLOCK_KV), k_strides, PAD_K)
    v_offsets = tile_offsets(tl.arange(0, BLOCK_KV), v_strides, PAD_V)
    grad = tl.zeros([BLOCK_Q, PAD_K], dtype=tl.float32)
    last_row = tl.minimum(tile * BLOCK_Q + BLOCK_Q, n_q) - 1
    whole, end = key_range(tile * BLOCK_Q, last_row, offset, n_kv, CAUSAL, BLOCK_KV)
    keep_stride = keep_strides[1] if MASKED else 0
    grad = gather_grad_q(
        grad, q_tile, grad_o_tile, lse_tile, delta_tile, k, v, keep, batch, kv_head, k_offsets, v_offsets, k_strides, v_strides,
        keep_stride, rows, n_kv, offset, scale_log2, 0, whole, D_K, D_V, CAUSAL, MASKED, False, PRECISION, BLOCK_KV, DESCRIBED,
    )  # fmt: skip
    grad = gather_grad_q(
        grad, q_tile, grad_o_tile, lse_tile, delta_tile, k, v, keep, batch, kv_head, k_offsets, v_offsets, k_strides, v_strides,
        keep_stride, rows, n_kv, offset, scale_log2, whole, end, D_K, D_V, CAUSAL, MASKED, True, PRECISION, BLOCK_KV, DESCRIBED,
    )  # fmt: skip
    store_tile(
        grad_q, tile_offsets(rows, grad_q_strides, PAD_K), live, grad * (scale_log2 * LN_2), D_K
    )


@triton.jit
def add_queries(
    grad_k, grad_v, k_tile, v_tile, keys, q, grad_o, lse, delta, q_offsets, grad_o_offsets, q_strides, grad_o_strides, batch, head, heads,
    start, n_q, offset, scale_log2, D_K: tl.constexpr, D_V: tl.constexpr, CAUSAL: tl.constexpr, EDGE: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_Q: tl.constexpr, DESCRIBED: tl.constexpr,
):  # fmt: skip
    """What one block of queries adds to the gradients of a tile of keys and values. All is
    transposed: keys are rows.
    """
    q = head_start(q, batch, head, q_strides, DESCRIBED)
    grad_o = head_start(grad_o, batch, head, grad_o_strides, DESCRIBED)
    lse += (batch * heads + head) * n_q
    delta += (batch * heads + head) * n_q
    rows = start + tl.arange(0, BLOCK_Q)
    live = rows < n_q
    q_tile = load_rows(q, batch, head, start, q_strides, q_offsets, live, D_K, EDGE, DESCRIBED)
    s = tl.dot(k_tile, tl.trans(q_tile), input_precision=PRECISION)  # [keys, queries]
    if EDGE and CAUSAL:
        s = tl.where(keys[:, None] <= (rows + offset)[None, :], s, -INFINITY)
    p = tl.exp2(s * scale_log2 - load_lse(lse, rows, live)[None, :])
    grad_o_tile = load_rows(
        grad_o, batch, head, start, grad_o_strides, grad_o_offsets, live, D_V, EDGE, DESCRIBED
    )
    grad_v = tl.dot(p.to(grad_o_tile.dtype), grad_o_tile, grad_v, input_precision=PRECISION)
    grad_p = tl.dot(v_tile, tl.trans(grad_o_tile), input_precision=PRECISION)
    grad_s = p * (grad_p - tl.load(delta + rows, mask=live, other=0.0)[None, :])
    grad_k = tl.dot(grad_s.to(q_tile.dtype), q_tile, grad_k, input_precision=PRECISION)
    return grad_k, grad_v


@triton.jit(do_not_specialize=SIZES)
def grad_kv_kernel(
    q, k, v, keep, grad_o, lse, delta, grad_k, grad_v, q_strides, k_strides, v_strides, keep_strides, grad_o_strides, grad_k_strides,
    grad_v_strides, heads, group, n_q, n_kv, offset, scale_log2,
    D_K: tl.constexpr, D_V: tl.constexpr, PAD_K: tl.constexpr, PAD_V: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr,
    PRECISION: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_KV: tl.constexpr, DESCRIBED: tl.constexpr,
):  # fmt: skip
    """One tile of keys of one key/value head: the gradients of k and v, summed over the query heads
    that share it.
    """
    tiles = tl.cdiv(n_kv, BLOCK_KV)
    tile, entry = tl.program_id(0) % tiles, tl.program_id(0) // tiles
    kv_heads = heads // group
    batch, kv_head = (entry // kv_heads).to(tl.int64), (entry % kv_heads).to(tl.int64)
    k += batch * k_strides[0] + kv_head * k_strides[1]
    v += batch * v_strides[0] + kv_head * v_strides[1]
    grad_k += batch * grad_k_strides[0] + kv_head * grad_k_strides[1]
    grad_v += batch * grad_v_strides[0] + kv_head * grad_v_strides[1]
    if MASKED:
        keep += batch * keep_strides[0]

    keys = tile * BLOCK_KV + tl.arange(0, BLOCK_KV)
    live = live_keys(keys, n_kv, keep, keep_strides[1] if MASKED else 0, MASKED)
    k_tile = load_tile(k, tile_offsets(keys, k_strides, PAD_K), live, D_K, True)
    v_tile = load_tile(v, tile_offsets(keys, v_strides, PAD_V), live, D_V, True)
    q_offsets = tile_offsets(tl.arange(0, BLOCK_Q), q_strides, PAD_K)
    grad_o_offsets = tile_offsets(tl.arange(0, BLOCK_Q), grad_o_strides, PAD_V)
    grad_k_tile = tl.zeros([BLOCK_KV, PAD_K], dtype=tl.float32)
    grad_v_tile = tl.zeros([BLOCK_KV, PAD_V], dtype=tl.float32)

    # Queries before `first` see none of these keys, those from `whole` on see all of them; all
    # three are multiples of BLOCK_Q.
    first, whole, full_end = 0, 0, n_q // BLOCK_Q * BLOCK_Q
    if CAUSAL:
        last_key = tl.minimum(tile * BLOCK_KV + BLOCK_KV, n_kv) - 1
        first = tl.maximum(tile * BLOCK_KV - offset, 0) // BLOCK_Q * BLOCK_Q
        whole = tl.cdiv(tl.maximum(last_key - offset, 0), BLOCK_Q) * BLOCK_Q
    end = tl.cdiv(n_q, BLOCK_Q) * BLOCK_Q
    diagonal = tl.maximum(tl.minimum(whole, end) - first, 0) // BLOCK_Q
    edges = diagonal + tl.where(
        (whole < end) & (full_end < n_q), 1, 0
    )  # the blocks on the diagonal, and the last one if it is not full
    blocks = tl.maximum(full_end - whole, 0) // BLOCK_Q
    # Heads and blocks are counted in one loop: nested, they would hold twice the registers.
    for step in range(group * blocks):
        head = kv_head * group + step // blocks
        grad_k_tile, grad_v_tile = add_queries(
            grad_k_tile, grad_v_tile, k_tile, v_tile, keys, q, grad_o, lse, delta, q_offsets, grad_o_offsets, q_strides, grad_o_strides,
            batch, head, heads, whole + step % blocks * BLOCK_Q, n_q, offset, scale_log2, D_K, D_V, CAUSAL, False, PRECISION, BLOCK_Q,
            DESCRIBED,
        )  # fmt: skip
    for step in range(group * edges):
        head, edge = kv_head * group + step // edges, step % edges
        start = tl.where(edge < diagonal, first + edge * BLOCK_Q, full_end)
        grad_k_tile, grad_v_tile = add_queries(
            grad_k_tile, grad_v_tile, k_tile, v_tile, keys, q, grad_o, lse, delta, q_offsets, grad_o_offsets, q_strides, grad_o_strides,
            batch, head, heads, start, n_q, offset, scale_log2, D_K, D_V, CAUSAL, True, PRECISION, BLOCK_Q, DESCRIBED,
        )  # fmt: skip
    # Keys that are masked read as zero above, which leaves numbers without meaning in their rows.
    grad_k_tile = tl.where(live[:, None], grad_k_tile * (scale_log2 * LN_2), 0.0)
    grad_v_tile = tl.where(live[:, None], grad_v_tile, 0.0)
    store_tile(grad_k, tile_offsets(keys, grad_k_strides, PAD_K), keys < n_kv, grad_k_tile, D_K)
    store_tile(grad_v, tile_offsets(keys, grad_v_strides, PAD_V), keys < n_kv, grad_v_tile, D_V)
