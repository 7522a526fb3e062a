"""Single instructions against numpy, by the layouts of the PTX documentation; and each fault."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tests.ptxrun.block import Block, Timing
from tests.ptxrun.compilers import bound
from tests.ptxrun.memory import PARAMETER_BASE, Fault, Global, TensorMap
from tests.ptxrun.text import parse

U16, U32 = np.uint16, np.uint32
KERNEL = """.visible .entry kernel(
    .param .u64 .ptr .global .align 1 in, .param .u64 .ptr .global .align 1 out,
    .param .align 64 .b8 map[128]
)
.reqntid {threads}
.maxnreg 64
{{
    .reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<99>; .reg .b64 %rd<99>;
    mov.u32 %r90, %tid.x; mul.wide.u32 %rd90, %r90, 4;
    ld.param.b64 %rd91, [in]; add.s64 %rd91, %rd91, %rd90;
    ld.param.b64 %rd92, [out]; add.s64 %rd92, %rd92, %rd90;
    mov.b64 %rd93, map; cvta.param.u64 %rd94, %rd93;
    {body}
    ret;
}}"""
LATE = Timing(moment="late")


def run(
    body: str, inputs: np.ndarray, outputs: int = 1, *, threads: int = 32,
    maps: Callable[[int], TensorMap] | None = None, **how: Any,
) -> np.ndarray:  # fmt: skip
    """Words [outputs, threads], from `st.global.b32 [%rd92 + 4 * threads * number]`; %rd91 points
    at a thread's word of the inputs.
    """
    filled = np.zeros((outputs, threads), U32)
    memory = Global([inputs.view(U32), filled])
    parameters = {
        name: np.array([memory.address(index)], np.uint64)
        for index, name in enumerate(("in", "out"))
    }
    code = bound(parse(KERNEL.format(threads=threads, body=body)), parameters)
    tensor = {PARAMETER_BASE + code.offsets["map"]: maps(memory.address(0))} if maps else {}
    Block(code, memory, 32768, maps=tensor, races=True, **how).run()
    return memory.copy_of(1, filled).reshape(filled.shape)


def random_words(count: int, seed: int = 0) -> np.ndarray:
    """Of all sizes, small ones too."""
    make = np.random.default_rng(seed)
    words = make.integers(0, 2**32, count, U32) >> make.integers(0, 31, count).astype(U32)
    return np.where(make.random(count) < 0.5, words, -words)


Function = Callable[..., np.ndarray]
WHOLE: dict[str, tuple[type, Function]] = {
    "add.s32": (np.int32, np.add),
    "sub.s32": (np.int32, np.subtract),
    "mul.lo.s32": (np.int32, np.multiply),
    "mul.hi.u32": (U32, lambda a, b: (a.astype(np.uint64) * b >> 32).astype(U32)),
    "div.s32": (np.int32, lambda a, b: np.trunc(a / np.float64(b)).astype(np.int32)),
    "rem.s32": (np.int32, np.fmod),
    "min.s32": (np.int32, np.minimum),
    "max.u32": (U32, np.maximum),
    "and.b32": (U32, np.bitwise_and),
    "or.b32": (U32, np.bitwise_or),
    "xor.b32": (U32, np.bitwise_xor),
    "shl.b32": (U32, lambda a, n: np.where(n < 32, a.astype(np.uint64) << (n & 31), 0).astype(U32)),
    "shr.u32": (U32, lambda a, n: np.where(n < 32, a >> (n & 31), 0).astype(U32)),
    "shr.s32": (np.int32, lambda a, n: a >> np.minimum(n.view(U32), 31).view(np.int32)),
}
REAL: dict[str, Function] = {
    "add.f32": np.add,
    "mul.f32": np.multiply,
    "div.full.f32": np.divide,
    "min.f32": np.fmin,
    "max.f32": np.fmax,
}


def binary(name: str) -> str:
    loads = "ld.global.b32 %r1, [%rd91]; ld.global.b32 %r2, [%rd91+128];"
    return f"{loads} {name} %r0, %r1, %r2; st.global.b32 [%rd92], %r0;"


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers(name: str) -> None:
    kind, function = WHOLE[name]
    words = random_words(64)
    words[32:48] %= 40  # counts of shifts, within a word and beyond
    words[words == 0] = 3
    found = run(binary(name), words)[0].view(kind)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, function(words[:32].view(kind), words[32:].view(kind)))


@pytest.mark.parametrize("name", REAL)
def test_real_numbers(name: str) -> None:
    x = np.random.default_rng(1).normal(size=64).astype(np.float32)
    x[0], x[33] = np.nan, np.inf
    found = run(binary(name), x)[0].view(np.float32)
    np.testing.assert_array_equal(found, REAL[name](x[:32], x[32:]))


@pytest.mark.parametrize(
    ("how", "function"),
    [("lt", np.less), ("ge", np.greater_equal), ("neu", np.not_equal),
     ("ne", lambda a, b: (a < b) | (a > b)), ("leu", lambda a, b: ~(a > b))],
)  # fmt: skip
def test_comparisons_choose_and_guards_leave_what_was_there(how: str, function: Function) -> None:
    x = np.random.default_rng(1).normal(size=64).astype(np.float32)
    x[0], x[1] = np.nan, x[33]
    body = (
        "ld.global.b32 %r1, [%rd91]; ld.global.b32 %r2, [%rd91+128];"
        f"setp.{how}.f32 %p1, %r1, %r2; selp.b32 %r0, %r1, %r2, %p1; st.global.b32 [%rd92], %r0;"
        "mov.b32 %r3, 7; @!%p1 mov.b32 %r3, %r90; @%p1 st.global.b32 [%rd92+128], %r3;"
        "@!%p1 st.global.b32 [%rd92+128], %r3;"
    )
    chosen, guarded = run(body, x, 2)
    mask = function(x[:32], x[32:])
    np.testing.assert_array_equal(chosen, np.where(mask, x[:32], x[32:]).view(U32))
    np.testing.assert_array_equal(guarded, np.where(mask, 7, np.arange(32)))


@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_half_precision_is_rounded_to_the_nearest(kind: str) -> None:
    x = np.random.default_rng(1).normal(size=64).astype(np.float32)
    x[1] = 1 + 2.0**-9 + 2.0**-12  # between two of either, in bf16 close to the middle
    packed = run(binary(f"cvt.rn.{kind}x2.f32"), x)[0]
    torch_kind = torch.bfloat16 if kind == "bf16" else torch.float16
    right = torch.from_numpy(x).to(torch_kind).view(torch.int16).numpy().view(U16)
    np.testing.assert_array_equal(packed, right[:32].astype(U32) << 16 | right[32:])


def test_lanes_exchange() -> None:
    body = (
        "ld.global.b32 %r1, [%rd91]; shfl.sync.bfly.b32 %r0, %r1, 5, 31, -1;"
        "st.global.b32 [%rd92], %r0; shfl.sync.idx.b32 %r2, %r1, 3, 31, -1;"
        "st.global.b32 [%rd92+128], %r2;"
    )
    words = random_words(32)
    crossed, third = run(body, words, 2)
    np.testing.assert_array_equal(crossed, words[np.arange(32) ^ 5])
    assert (third == words[3]).all()


# ---- matrices ------------------------------------------------------------------------------------

LANE = np.arange(32)
ROW, COLUMN = LANE // 4, LANE % 4 * 2  # groupID and twice threadID_in_group of the documentation


def halves(x: np.ndarray) -> np.ndarray:
    """bf16 bits of whole numbers, which are exact."""
    return (x.astype(np.float32).view(U32) >> 16).astype(U16)


def pairs(x: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """A register: an element and its right neighbour."""
    bits = halves(x).astype(U32)
    return bits[rows, columns] | bits[rows, columns + 1] << 16


def test_mma_multiplies_fragments() -> None:
    make = np.random.default_rng(0)
    a, b = (make.integers(-8, 8, shape).astype(np.float32) for shape in ((16, 16), (16, 8)))
    words = [pairs(a, ROW + r, COLUMN + c) for c in (0, 8) for r in (0, 8)]
    words += [pairs(b.T, ROW, COLUMN + r) for r in (0, 8)]
    loads = "".join(f"ld.global.b32 %r{i}, [%rd91+{128 * i}];" for i in range(6))
    stores = "".join(f"st.global.b32 [%rd92+{128 * i}], %r{10 + i};" for i in range(4))
    mma = (
        "mov.b32 %r20, 0f40000000; mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
        " {%r10, %r11, %r12, %r13}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%r20, %r20, %r20, %r20};"
    )
    found = run(loads + mma + stores, np.concatenate(words), 4).view(np.float32)
    right = a @ b + 2
    for i, (down, beside) in enumerate(((0, 0), (0, 1), (8, 0), (8, 1))):
        np.testing.assert_array_equal(found[i], right[ROW + down, COLUMN + beside])


@pytest.mark.parametrize("trans", ["", ".trans"])
def test_ldmatrix_reads_rows_of_eight(trans: str) -> None:
    body = (  # each lane stores 8 bytes; rows of 16 bytes lie one after the other
        "ld.global.v2.b32 {%r1, %r2}, [%rd95]; shl.b32 %r3, %r90, 3;"
        "st.shared.v2.b32 [%r3], {%r1, %r2}; bar.sync 0; and.b32 %r5, %r90, 15;"
        f"shl.b32 %r4, %r5, 4; ldmatrix.sync.aligned.m8n8.x2{trans}.shared.b16 {{%r6, %r7}}, [%r4];"
        "st.global.b32 [%rd92], %r6; st.global.b32 [%rd92+128], %r7;"
    )
    x = np.random.default_rng(0).integers(-99, 99, (16, 8)).astype(np.float32)
    address = "add.s64 %rd95, %rd91, %rd90;"
    found = run(address + body, halves(x), 2)
    for i, matrix in enumerate((x[:8], x[8:])):
        np.testing.assert_array_equal(found[i], pairs(matrix.T if trans else matrix, ROW, COLUMN))


def warpgroup_body(*, turned: int, wait: str = "0", expected: int = 8192) -> str:
    """TMA brings 64 rows of 64; wgmma multiplies 16 columns (or rows) of them by themselves."""
    stores = "".join(f"st.global.b32 [%rd92+{512 * i}], %r{i};" for i in range(32))
    results = ", ".join(f"%r{i}" for i in range(32))
    # start / 16, then in units of 16 bytes the distances of cores, and 1 for 128 bytes' swizzle
    descriptor = 1024 >> 4 | 1 << 16 | 64 << 32 | 1 << 62
    return (
        "setp.eq.s32 %p1, %r90, 0; @%p1 mbarrier.init.shared.b64 [0], 1; fence.proxy.async;"
        f"bar.sync 0; @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [0], {expected};"
        "@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [1024], [%rd94, {0, 0}], [0];"
        "again: mbarrier.try_wait.parity.shared.b64 %p2, [0], 0; @!%p2 bra again;"
        f"mov.b64 %rd1, {descriptor};"
        f"wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{{results}}}, %rd1, %rd1, 0, 1, 1,"
        f" {turned}, {turned}; wgmma.commit_group.sync.aligned;"
        f"wgmma.wait_group.sync.aligned {wait}; {stores}"
    )


def tile(address: int) -> TensorMap:
    return TensorMap(address=address, shape=(64, 64), strides=(2, 128), box=(64, 64), item_bytes=2,
                     swizzle=3)  # fmt: skip


@pytest.mark.parametrize("timing", [Timing(), LATE, Timing(moment="random", seed=3)], ids=str)
@pytest.mark.parametrize("turned", [0, 1])
def test_wgmma_multiplies_swizzled_tiles_that_tma_brought(turned: int, timing: Timing) -> None:
    x = np.random.default_rng(0).integers(-8, 8, (64, 64)).astype(np.float32)
    body = warpgroup_body(turned=turned)
    found = run(body, halves(x), 32, threads=128, maps=tile, timing=timing, strict=True)
    part = x[:16].T if turned else x[:, :16]
    right = part @ part.T
    rows = np.arange(128) // 32 * 16 + np.tile(ROW, 4)
    for i, register in enumerate(found.view(np.float32)):
        columns = i // 4 * 8 + np.tile(COLUMN, 4) + i % 2
        np.testing.assert_array_equal(register, right[rows + i // 2 % 2 * 8, columns])


# ---- faults --------------------------------------------------------------------------------------

INIT = "setp.eq.s32 %p1, %r90, 0; @%p1 mbarrier.init.shared.b64 [0], 1; bar.sync 0;"
WAIT = "again: mbarrier.try_wait.parity.shared.b64 %p2, [0], 0; @!%p2 bra again;"
FAULTS = {
    "outside of memory": "st.global.b32 [%rd92+1024], %r90;",
    "not aligned to 4 bytes": "st.global.b32 [%rd92+2], %r90;",
    "deadlock": INIT + WAIT,
    "more arrivals than the 1": INIT + "mbarrier.arrive.shared.b64 _, [0], 2;",
    "no mbarrier at 8": "mbarrier.arrive.shared.b64 _, [8];",
    "race": "shr.u32 %r1, %r90, 5; st.shared.b32 [16], %r1;",
    "shfl by a part of a warp": (
        "setp.lt.u32 %p1, %r90, 5; @%p1 bra out; shfl.sync.idx.b32 %r0, %r90, 0, 31, -1; out:"
    ),
    "setmaxnreg dec from 64 to 72": "setmaxnreg.dec.sync.aligned.u32 72;",
    "registers; 0 are free": "setmaxnreg.inc.sync.aligned.u32 72;",
    "reads a register before it is written": "add.s32 %r0, %r1, %r1;",
    "division by zero": "mov.b32 %r1, 0; div.s32 %r0, %r90, %r1;",
}


@pytest.mark.parametrize("message", FAULTS)
def test_what_no_correct_kernel_does_is_refused(message: str) -> None:
    with pytest.raises(Fault, match=message):
        run(FAULTS[message], random_words(64), threads=64)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"wait": "1"}, "ends while products"),
        ({"wait": "1; mov.b32 %r40, %r0"}, "while wgmma writes it"),
        ({"expected": 4096}, "deadlock: .* mbarrier 0 phase 0"),
    ],
)
def test_a_product_or_copy_that_is_waited_for_wrongly_is_refused(
    changes: dict[str, Any], message: str
) -> None:
    body = warpgroup_body(turned=0, **changes).partition("st.global")[0]
    with pytest.raises(Fault, match=message):
        run(body, np.zeros((64, 64), U16), threads=128, maps=tile)


@pytest.mark.parametrize(("fence", "is_refused"), [("fence.proxy.async;", False), ("", True)])
def test_the_asynchronous_proxy_sees_what_a_fence_published(fence: str, is_refused: bool) -> None:
    stores = "shl.b32 %r50, %r90, 6;" + "".join(
        f"st.shared.b32 [%r50+{1024 + 4 * i}], 0;" for i in range(16)
    )
    before, product = warpgroup_body(turned=0).split("again:")
    body = stores + fence + "bar.sync 1;" + "mov.b64" + product.split("mov.b64", 1)[1]
    assert "wgmma" not in before
    if not is_refused:
        assert not run(body, random_words(128), 32, threads=128).any()
        return
    with pytest.raises(Fault, match=r"no fence\.proxy\.async"):
        run(body, random_words(128), 32, threads=128)


@pytest.mark.parametrize(("wait", "arrived"), [("cp.async.wait_group 0;", True), ("", False)])
def test_cp_async_lands_at_its_wait(wait: str, arrived: bool) -> None:
    body = (
        "mul.lo.s32 %r1, %r90, 4; cp.async.ca.shared.global [%r1], [%rd91], 4;"
        f"cp.async.commit_group; {wait} ld.shared.b32 %r2, [%r1]; st.global.b32 [%rd92], %r2;"
        "cp.async.wait_group 0;"
    )
    words = random_words(32)
    np.testing.assert_array_equal(
        run(body, words, timing=LATE)[0], words if arrived else np.full(32, 2**32 - 1)
    )
