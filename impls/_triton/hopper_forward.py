"""The forward kernel for Hopper (compute capability 9.x), in Gluon: a producer and two consumers.

Follows Shah et al. 2024, FlashAttention-3, with the names of kernels/. Written from scratch for
this project. A block has three partitions of warps:

- the producer, one warp, has the tensor memory accelerator (TMA) copy tiles into shared memory: the
  queries of each consumer, and tiles of keys and values into rings of STAGES places;
- two consumers, a warpgroup each, attend to 64 queries each. Consumers take turns (ping-pong): one
  issues its matrix products while the other computes its softmax. Within a consumer, the scores of
  a tile are issued before the product of the tile before with its values.

Tiles of keys are visited from the last to the first, so that those that need a mask come first and
the loop over the others is the last one.

Barriers (mbarriers): `full` of a place is completed by the bytes that TMA writes, `empty` by one
arrival of each consumer that has read it, `turn` of a consumer by the other one. Each is used once
per tile, so the number of tiles so far gives the phase to wait for; all partitions count the same
tiles, also where a consumer's queries see none of a tile.

A program takes one unit of work after another, a tile of queries of one head: the producer already
loads the next unit while consumers store the last one. If causal, units differ in length, so a
program takes them in pairs, a long one and then the short one that makes up for it: all pairs are
equally long. Heads are visited in sections whose keys and values fit into the L2 cache together,
and within a section the longest units come first.

Descriptors read zeros beyond the edges of a tensor; widths are padded so (PAD_K, PAD_V). The rest
is as in kernels/: offsets in 64 bits, `lse` to base 2, -inf and zeros for a query without keys.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

# Triton 3.9 renamed it; of the old name it keeps a stub that refuses.
async_load = tma.async_load if hasattr(tma, "async_load") else tma.async_copy_global_to_shared

CONSUMERS = gl.constexpr(2)
BLOCK_M = gl.constexpr(64)  # queries of a consumer: the rows of a warpgroup's matrix instruction
ITEM_BYTES = gl.constexpr(2)
INFINITY = gl.constexpr(float("inf"))
# Passes two sums on, through an instruction that only a negative one would trigger. ptxas moves
# arithmetic behind waits, but not an instruction with an effect: so the exponentials in the sums
# are computed before the wait that follows, while P V of the tile before runs.
PINNED = gl.constexpr(
    "{ .reg .pred negative; .reg .f32 lesser; min.f32 lesser, $2, $3;"
    " setp.lt.f32 negative, lesser, 0f00000000; @negative pmevent 0;"
    " mov.b32 $0, $2; mov.b32 $1, $3; }"
)
# Compiled for any value, so that a sweep over N compiles once.
SIZES = ["entries", "heads", "group", "n_q", "n_kv", "offset", "section"]


# ---- which work, in which order ------------------------------------------------------------------


@gluon.jit
def fold_of(tiles, entries, CAUSAL: gl.constexpr):
    """Units that a program takes together: 2 if causal, one long and one short, unless there are
    enough programs for all units.
    """
    fold = 1
    if CAUSAL:  # noqa: SIM102 - decided by the compiler, the other one by the GPU
        if gl.num_programs(0) < tiles * entries:
            fold = 2
    return fold


@gluon.jit
def turns_of(tiles, entries, CAUSAL: gl.constexpr):
    """How many units this program takes."""
    fold = fold_of(tiles, entries, CAUSAL)
    shares = gl.cdiv(tiles, fold) * entries
    programs = gl.num_programs(0)
    return gl.cdiv(shares - gl.program_id(0), programs) * fold


@gluon.jit
def unit_in(turn, tiles, entries, section, CAUSAL: gl.constexpr):
    """The tile of queries, and the entry (batch * heads + head), that this program takes in a turn.

    The tile in the middle is paired with one more, which has no queries.
    """
    fold = fold_of(tiles, entries, CAUSAL)
    shares = gl.cdiv(tiles, fold)  # of a head
    share = turn // fold * gl.num_programs(0) + gl.program_id(0)
    first_entry = share // (section * shares) * section
    within = share - first_entry * shares
    width = gl.minimum(section, entries - first_entry)
    tile = within // width
    if turn % fold == 0:
        tile = tiles - 1 - tile
    elif tile * 2 == tiles - 1:
        tile = tiles
    return tile, first_entry + within % width


@gluon.jit
def keys_seen(first_row, n_q, n_kv, offset, CAUSAL: gl.constexpr):
    """How many keys, from the first on, some query of the block sees, and how many all of them."""
    seen = n_kv
    whole = n_kv
    if CAUSAL:
        last_row = gl.minimum(first_row + CONSUMERS * BLOCK_M, n_q) - 1
        seen = gl.minimum(gl.maximum(last_row + offset + 1, 0), n_kv)
        whole = gl.minimum(gl.maximum(first_row + offset + 1, 0), n_kv)
    if first_row >= n_q:
        seen = n_kv * 0
    return seen, whole


# ---- the producer --------------------------------------------------------------------------------


@gluon.jit
def producer(
    q, k, v, q_s, k_s, v_s, q_full, q_empty, k_full, k_empty, v_full, v_empty,
    entries, heads, group, n_q, n_kv, offset, section,
    PAD_K: gl.constexpr, PAD_V: gl.constexpr, CAUSAL: gl.constexpr, BLOCK_KV: gl.constexpr,
    STAGES: gl.constexpr,
):  # fmt: skip
    """Copies queries, keys and values of all units, as far ahead as there is room."""
    tiles = gl.cdiv(n_q, CONSUMERS * BLOCK_M)
    number = 0  # of tiles of keys so far
    loaded = 0  # units whose queries have been loaded
    for turn in range(turns_of(tiles, entries, CAUSAL)):
        tile, entry = unit_in(turn, tiles, entries, section, CAUSAL)
        batch, head = entry // heads, entry % heads
        kv_head = head // group
        first_row = tile * CONSUMERS * BLOCK_M
        n_seen, _ = keys_seen(first_row, n_q, n_kv, offset, CAUSAL)
        n_tiles = gl.cdiv(n_seen, BLOCK_KV)
        if n_tiles > 0:
            for c in gl.static_range(CONSUMERS):
                mbarrier.wait(q_empty.index(c), loaded & 1 ^ 1)
                mbarrier.expect(q_full.index(c), BLOCK_M * PAD_K * ITEM_BYTES)
                row = first_row + c * BLOCK_M
                async_load(q, [batch, head, row, 0], q_full.index(c), q_s.index(c))
            loaded += 1
        # As consumers need them: the keys of a tile before the values of the tile before.
        for i in range(n_tiles + 1):
            start = (n_tiles - 1 - i) * BLOCK_KV
            if i < n_tiles:
                place, phase = (number + i) % STAGES, (number + i) // STAGES & 1
                mbarrier.wait(k_empty.index(place), phase ^ 1)
                mbarrier.expect(k_full.index(place), BLOCK_KV * PAD_K * ITEM_BYTES)
                async_load(k, [batch, kv_head, start, 0], k_full.index(place), k_s.index(place))
            if i > 0:
                last = start + BLOCK_KV
                place, phase = (number + i - 1) % STAGES, (number + i - 1) // STAGES & 1
                mbarrier.wait(v_empty.index(place), phase ^ 1)
                mbarrier.expect(v_full.index(place), BLOCK_KV * PAD_V * ITEM_BYTES)
                async_load(v, [batch, kv_head, last, 0], v_full.index(place), v_s.index(place))
        number += n_tiles


# ---- the consumers -------------------------------------------------------------------------------


@gluon.jit
def issue_scores(
    q_s, k_s, k_full, turns, number,
    C: gl.constexpr, PAD_K: gl.constexpr, BLOCK_KV: gl.constexpr, STAGES: gl.constexpr,
    S: gl.constexpr,
):  # fmt: skip
    """Start Q K^T of a tile when its keys are there and it is this consumer's turn."""
    place, phase = number % STAGES, number // STAGES & 1
    mbarrier.wait(k_full.index(place), phase)
    # The first turn is consumer 0's; its barrier is one phase ahead.
    mbarrier.wait(turns.index(C), number & 1 if C > 0 else number & 1 ^ 1)
    q_tile = q_s.index(C).reshape([BLOCK_M, PAD_K])
    k_tile = k_s.index(place).reshape([BLOCK_KV, PAD_K]).permute((1, 0))
    zero = gl.zeros([BLOCK_M, BLOCK_KV], gl.float32, S)
    return warpgroup_mma(q_tile, k_tile, zero, use_acc=False, is_async=True)


@gluon.jit
def issue_values(
    acc, p, v_s, v_full, number,
    PAD_V: gl.constexpr, BLOCK_KV: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    """Start acc + P V of a tile when its values are there."""
    place, phase = number % STAGES, number // STAGES & 1
    mbarrier.wait(v_full.index(place), phase)
    v_tile = v_s.index(place).reshape([BLOCK_KV, PAD_V])
    return warpgroup_mma(p, v_tile, acc, is_async=True)


@gluon.jit
def softmax(
    qk, m_i, l_i, last_key, start, scale_log2,
    MASKED: gl.constexpr, BLOCK_KV: gl.constexpr, S: gl.constexpr,
):  # fmt: skip
    """The weights of a tile, the new maxima and sums, and the factor for older sums."""
    if MASKED:
        keys = start + gl.arange(0, BLOCK_KV, gl.SliceLayout(0, S))
        qk = gl.where(keys[None, :] <= last_key[:, None], qk, -INFINITY)
    m_ij = gl.maximum(m_i, gl.max(qk, 1) * scale_log2)
    # A query that has seen no key yet would give inf - inf.
    shift = gl.where(m_ij == -INFINITY, 0.0, m_ij) if MASKED else m_ij
    p = gl.exp2(qk * scale_log2 - shift[:, None])
    alpha = gl.exp2(m_i - shift)
    return p, m_ij, l_i * alpha + gl.sum(p, 1), alpha


@gluon.jit
def attend_tile(
    acc, p, m_i, l_i, number, last_key, start, scale_log2,
    q_s, k_s, v_s, k_full, k_empty, v_full, v_empty, turns,
    C: gl.constexpr, MASKED: gl.constexpr, PAD_K: gl.constexpr, PAD_V: gl.constexpr,
    BLOCK_KV: gl.constexpr, STAGES: gl.constexpr, S: gl.constexpr, OUT: gl.constexpr,
    P: gl.constexpr,
):  # fmt: skip
    """One step: the scores of a tile and the values of the one before; p are its weights."""
    qk = issue_scores(q_s, k_s, k_full, turns, number, C, PAD_K, BLOCK_KV, STAGES, S)
    acc = issue_values(acc, p, v_s, v_full, number - 1, PAD_V, BLOCK_KV, STAGES)
    mbarrier.arrive(turns.index((C + 1) % CONSUMERS))
    qk = warpgroup_mma_wait(1, deps=(qk,))
    mbarrier.arrive(k_empty.index(number % STAGES))
    weights, m_i, l_i, alpha = softmax(
        qk, m_i, l_i, last_key, start, scale_log2, MASKED, BLOCK_KV, S
    )
    weights = gl.convert_layout(weights.to(p.dtype), P)
    l_i = gl.inline_asm_elementwise(
        PINNED, "=f,=f,f,f", [l_i], dtype=gl.float32, is_pure=False, pack=2
    )
    acc, weights = warpgroup_mma_wait(0, deps=(acc, weights))
    mbarrier.arrive(v_empty.index((number - 1) % STAGES))
    acc = acc * gl.convert_layout(alpha, gl.SliceLayout(1, OUT))[:, None]
    return acc, weights, m_i, l_i


@gluon.jit
def consumer(
    q_s, k_s, v_s, q_full, q_empty, k_full, k_empty, v_full, v_empty, turns, o, lse,
    o_batch, o_head, o_row, entries, heads, n_q, n_kv, offset, section, scale_log2,
    C: gl.constexpr, D_V: gl.constexpr, PAD_K: gl.constexpr, PAD_V: gl.constexpr,
    CAUSAL: gl.constexpr, BLOCK_KV: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    """Output and log-sum-exp of 64 queries of each unit."""
    gl.static_assert(BLOCK_KV >= CONSUMERS * BLOCK_M)
    S: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_KV, 16])
    OUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, PAD_V, 16])
    P: gl.constexpr = gl.DotOperandLayout(0, OUT, 2)
    ROW: gl.constexpr = gl.SliceLayout(1, S)
    # 16 bytes of a row per thread
    STORED: gl.constexpr = gl.BlockedLayout([1, 8], [256 // PAD_V, PAD_V // 8], [4, 1], [1, 0])
    dtype: gl.constexpr = q_s.dtype
    tiles = gl.cdiv(n_q, CONSUMERS * BLOCK_M)
    number = 0
    loaded = 0
    for turn in range(turns_of(tiles, entries, CAUSAL)):
        tile, entry = unit_in(turn, tiles, entries, section, CAUSAL)
        first_row = tile * CONSUMERS * BLOCK_M
        row = first_row + C * BLOCK_M
        n_seen, n_whole = keys_seen(first_row, n_q, n_kv, offset, CAUSAL)
        n_tiles = gl.cdiv(n_seen, BLOCK_KV)
        acc = gl.zeros([BLOCK_M, PAD_V], gl.float32, OUT)
        m_i = gl.full([BLOCK_M], -INFINITY, gl.float32, ROW)
        l_i = gl.zeros([BLOCK_M], gl.float32, ROW)
        if n_tiles > 0:
            last_key = gl.full([BLOCK_M], n_seen - 1, gl.int32, ROW)
            if CAUSAL:
                last_key = gl.minimum(last_key, row + gl.arange(0, BLOCK_M, ROW) + offset)
            mbarrier.wait(q_full.index(C), loaded & 1)
            qk = issue_scores(q_s, k_s, k_full, turns, number, C, PAD_K, BLOCK_KV, STAGES, S)
            mbarrier.arrive(turns.index((C + 1) % CONSUMERS))
            qk = warpgroup_mma_wait(0, deps=(qk,))
            mbarrier.arrive(k_empty.index(number % STAGES))
            start = (n_tiles - 1) * BLOCK_KV
            weights, m_i, l_i, _ = softmax(
                qk, m_i, l_i, last_key, start, scale_log2, True, BLOCK_KV, S
            )
            p = gl.convert_layout(weights.to(dtype), P)
            number += 1
            # The diagonal of a causal block crosses at most two tiles; they have at least its rows.
            masked = gl.maximum(n_tiles - n_whole // BLOCK_KV, 1)
            if masked > 1:
                acc, p, m_i, l_i = attend_tile(
                    acc, p, m_i, l_i, number, last_key, start - BLOCK_KV, scale_log2,
                    q_s, k_s, v_s, k_full, k_empty, v_full, v_empty, turns,
                    C, True, PAD_K, PAD_V, BLOCK_KV, STAGES, S, OUT, P,
                )  # fmt: skip
                number += 1
            for i in range(masked, n_tiles):
                start = (n_tiles - 1 - i) * BLOCK_KV
                acc, p, m_i, l_i = attend_tile(
                    acc, p, m_i, l_i, number, last_key, start, scale_log2,
                    q_s, k_s, v_s, k_full, k_empty, v_full, v_empty, turns,
                    C, False, PAD_K, PAD_V, BLOCK_KV, STAGES, S, OUT, P,
                )  # fmt: skip
                number += 1
            mbarrier.arrive(q_empty.index(C))
            loaded += 1
            acc = issue_values(acc, p, v_s, v_full, number - 1, PAD_V, BLOCK_KV, STAGES)
            acc = warpgroup_mma_wait(0, deps=(acc,))
            mbarrier.arrive(v_empty.index((number - 1) % STAGES))

        empty = l_i == 0.0
        total = gl.where(empty, 1.0, l_i)
        acc = acc * gl.convert_layout(1.0 / total, gl.SliceLayout(1, OUT))[:, None]
        o_tile = gl.convert_layout(acc.to(dtype), STORED)
        o_rows = row + gl.arange(0, BLOCK_M, gl.SliceLayout(1, STORED))
        columns = gl.arange(0, PAD_V, gl.SliceLayout(0, STORED))
        batch, head = (entry // heads).to(gl.int64), (entry % heads).to(gl.int64)
        o_at = o + batch * o_batch + head * o_head
        o_at = o_at + (o_rows.to(gl.int64) * o_row)[:, None] + columns[None, :]
        inside = (o_rows < n_q)[:, None]
        if D_V < PAD_V:
            inside = inside & (columns < D_V)[None, :]
        gl.store(o_at, o_tile, mask=inside)
        lse_rows = row + gl.arange(0, BLOCK_M, ROW)
        lse_at = lse + entry.to(gl.int64) * n_q + lse_rows
        gl.store(lse_at, gl.where(empty, -INFINITY, m_i + gl.log2(total)), mask=lse_rows < n_q)


@gluon.jit(do_not_specialize=SIZES)
def hopper_forward_kernel(
    q, k, v, o, lse, o_batch, o_head, o_row, entries, heads, group, n_q, n_kv, offset, section,
    scale_log2, D_V: gl.constexpr, PAD_K: gl.constexpr, PAD_V: gl.constexpr, CAUSAL: gl.constexpr,
    BLOCK_KV: gl.constexpr, STAGES: gl.constexpr, CONSUMER_REGISTERS: gl.constexpr,
    PRODUCER_REGISTERS: gl.constexpr,
):  # fmt: skip
    """q, k and v are descriptors of [batch, heads, rows, columns] with tiles of one head."""
    q_s = gl.allocate_shared_memory(q.dtype, [CONSUMERS, 1, 1, BLOCK_M, PAD_K], q.layout)
    k_s = gl.allocate_shared_memory(k.dtype, [STAGES, 1, 1, BLOCK_KV, PAD_K], k.layout)
    v_s = gl.allocate_shared_memory(v.dtype, [STAGES, 1, 1, BLOCK_KV, PAD_V], v.layout)
    q_full = gl.allocate_shared_memory(gl.int64, [CONSUMERS, 1], mbarrier.MBarrierLayout())
    q_empty = gl.allocate_shared_memory(gl.int64, [CONSUMERS, 1], mbarrier.MBarrierLayout())
    turns = gl.allocate_shared_memory(gl.int64, [CONSUMERS, 1], mbarrier.MBarrierLayout())
    k_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    k_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for c in gl.static_range(CONSUMERS):
        mbarrier.init(q_full.index(c), count=1)
        mbarrier.init(q_empty.index(c), count=1)
        mbarrier.init(turns.index(c), count=1)
    for place in gl.static_range(STAGES):
        mbarrier.init(k_full.index(place), count=1)
        mbarrier.init(k_empty.index(place), count=CONSUMERS)
        mbarrier.init(v_full.index(place), count=1)
        mbarrier.init(v_empty.index(place), count=CONSUMERS)
    fence_async_shared()
    gl.warp_specialize(
        [
            (consumer, (
                q_s, k_s, v_s, q_full, q_empty, k_full, k_empty, v_full, v_empty, turns, o, lse,
                o_batch, o_head, o_row, entries, heads, n_q, n_kv, offset, section, scale_log2,
                0, D_V, PAD_K, PAD_V, CAUSAL, BLOCK_KV, STAGES,
            )),
            (consumer, (
                q_s, k_s, v_s, q_full, q_empty, k_full, k_empty, v_full, v_empty, turns, o, lse,
                o_batch, o_head, o_row, entries, heads, n_q, n_kv, offset, section, scale_log2,
                1, D_V, PAD_K, PAD_V, CAUSAL, BLOCK_KV, STAGES,
            )),
            (producer, (
                q, k, v, q_s, k_s, v_s, q_full, q_empty, k_full, k_empty, v_full, v_empty,
                entries, heads, group, n_q, n_kv, offset, section,
                PAD_K, PAD_V, CAUSAL, BLOCK_KV, STAGES,
            )),
        ],
        [4, 1],
        [CONSUMER_REGISTERS, PRODUCER_REGISTERS],
    )  # fmt: skip
