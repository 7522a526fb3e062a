"""Matrix instructions: which thread holds which element, and operands in shared memory."""

import re
from functools import cache
from typing import Any

import numpy as np

from .block import Block, Cohort
from .code import Operation, Site
from .memory import Fault, swizzled
from .races import WARP

U16, U32 = np.uint16, np.uint32
WARPGROUP = 4  # warps; each has 16 of 64 rows
TF32_BITS = U32(0xFFFFE000)  # the others are ignored


def widened(bits: np.ndarray, kind: str) -> np.ndarray:
    """16 bits each, as float32: numpy has no bfloat16."""
    if kind == "bf16":
        return (bits.astype(U32) << 16).view(np.float32)
    return bits.view(np.float16).astype(np.float32)


def narrowed(x: np.ndarray, kind: str) -> np.ndarray:
    """float32 as 16 bits, to the nearest, ties to even."""
    if kind == "f16":
        return x.astype(np.float16).view(U16)
    bits = np.ascontiguousarray(x).view(U32)
    rounded = (bits + U32(0x7FFF) + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(x), U32(0x7FFF), rounded).astype(U16)


# PTX ISA, "Matrix Fragments for mma.m16n8k16" and ".m16n8k8": rows are lane // 4 and 8 more, and
# neighbouring columns lie in the halves of a register or, of results, in registers.


def a_fragment(registers: np.ndarray, kind: str) -> np.ndarray:
    """[warps, 16, 16], of tf32 [warps, 16, 8], from [4, threads]."""
    warps = registers.shape[1] // WARP
    if kind == "tf32":
        x = (registers & TF32_BITS).view(np.float32).reshape(2, 2, warps, 8, 4)
        return x.transpose(2, 1, 3, 0, 4).reshape(warps, 16, 8)
    x = widened(registers.view(U16), kind).reshape(2, 2, warps, 8, 4, 2)
    return x.transpose(2, 1, 3, 0, 4, 5).reshape(warps, 16, 16)


def b_fragment(registers: np.ndarray, kind: str) -> np.ndarray:
    """[warps, 16, 8], of tf32 [warps, 8, 8], from [2, threads]."""
    warps = registers.shape[1] // WARP
    if kind == "tf32":
        x = (registers & TF32_BITS).view(np.float32).reshape(2, warps, 8, 4)
        return x.transpose(1, 0, 3, 2).reshape(warps, 8, 8)
    x = widened(registers.view(U16), kind).reshape(2, warps, 8, 4, 2)
    return x.transpose(1, 0, 3, 4, 2).reshape(warps, 16, 8)


def c_fragment(registers: np.ndarray) -> np.ndarray:
    """[warps, 16, columns] of fp32, from [columns / 2, threads]."""
    count, threads = registers.shape
    x = registers.view(np.float32).reshape(count // 4, 2, 2, threads // WARP, 8, 4)
    return x.transpose(3, 1, 4, 0, 5, 2).reshape(threads // WARP, 16, 2 * count)


def c_registers(matrix: np.ndarray) -> np.ndarray:
    """The inverse of `c_fragment`."""
    warps, _, columns = matrix.shape
    x = matrix.reshape(warps, 2, 8, columns // 8, 4, 2).transpose(3, 1, 5, 0, 2, 4)
    return np.ascontiguousarray(x, np.float32).reshape(columns // 2, warps * WARP).view(U32)


def stacked(c: Cohort, slots: list[int]) -> np.ndarray:
    """[registers, threads]"""
    return np.stack([c.per_lane(slot) for slot in slots])


def multiplied(site: Site) -> Operation:
    """mma.sync of 16 rows and 8 columns."""
    shape, kind = site.parts[3], site.parts[-2]
    if shape != ("m16n8k8" if kind == "tf32" else "m16n8k16") or "row" not in site.parts:
        raise site.unknown()
    to, *sources = site.operands
    d = site.all_to(to)
    a, b, added = (site.all_of(group, 4) for group in sources)

    def run(_: Block, c: Cohort) -> None:
        c.need_whole_warps("mma")
        product = a_fragment(stacked(c, a), kind) @ b_fragment(stacked(c, b), kind)
        result = c_registers(product + c_fragment(stacked(c, added)))
        for slot, value in zip(d, result, strict=True):
            c.r[slot] = value

    return run


# ---- warpgroups ----------------------------------------------------------------------------------


@cache
def places(mode: int, k_major: bool, rows: int, lead: int, stride: int) -> np.ndarray:
    """Byte offsets of [rows, 16] elements of 2 bytes, not yet swizzled (PTX ISA, "Strides" of
    wgmma): cores of 8 x 16 bytes; `lead` and `stride` are those of the descriptor.
    """
    units = 1 << mode  # of 16 bytes, in a row of the pattern
    row, k = np.arange(rows)[:, None], np.arange(16)[None, :]
    if k_major:
        step = 16 if mode else lead
        return row % 8 * units * 16 + row // 8 * stride + k // 8 * step + k % 8 * 2
    if mode == 0:
        return row // 8 * stride + row % 8 * 2 + k % 8 * 16 + k // 8 * lead
    unit = row // 8
    within = unit % units * 16 + k % 8 * units * 16 + row % 8 * 2
    return within + unit // units * lead + k // 8 * stride


def operand(
    block: Block, descriptor: int, rows: int, kind: str, *, k_major: bool
) -> tuple[np.ndarray, np.ndarray]:
    """[rows, 16], addresses and values: rows of A, or columns of B."""
    if descriptor >> 49 & 7:
        raise NotImplementedError("base offset of a matrix descriptor")
    start, lead, stride = ((descriptor >> at & 0x3FFF) << 4 for at in (0, 16, 32))
    mode = -(descriptor >> 62) % 4  # 1, 2 and 3 are 128, 64 and 32 bytes
    at = swizzled(start + places(mode, k_major, rows, lead, stride), mode)
    block.shared.seen_by_async(at)
    return at, widened(block.shared.load(at, 2), kind)


class Product:
    """One wgmma.mma_async: reads shared memory when it runs, writes registers when waited for."""

    def __init__(
        self, block: Block, c: Cohort, slots: list[int], a: list[int], b: int, *, adds: bool,
        kind: str, transposed: tuple[bool, bool],
    ) -> None:  # fmt: skip
        c.need_whole_warps("wgmma")
        self.slots, self.kind, self.transposed, self.warps = slots, kind, transposed, c.warps
        self.b = [int(x) for x in c.per_warp(b)]
        self.a = [int(x) for x in c.per_warp(a[0])] if len(a) == 1 else []
        self.read = {} if self.a else {slot: c.r[slot] for slot in a}
        self.a_values = None if self.a else stacked(c, a)
        self.before: Product | np.ndarray | None = None  # what it adds to
        if adds:
            flying = {c.in_flight.get(slot) for slot in slots}
            (self.before,) = flying if len(flying) == 1 else (None,)
            if len(flying) > 1 or (self.before and self.before.slots != slots):
                raise Fault("wgmma adds to registers of several products")
            if self.before is None:
                self.before = c_fragment(stacked(c, slots))
        for slot in slots:
            c.r[slot], c.in_flight[slot] = None, self
        self.since = None if block.races is None else block.races.clocks[c.warps].copy()
        self.result: np.ndarray | None = None  # [warps, 16, columns]
        self.touched: list[np.ndarray] = []  # addresses, by warp

    def run(self, block: Block) -> np.ndarray:
        if self.result is not None:
            return self.result
        columns = 2 * len(self.slots)
        b = {
            x: operand(block, x, columns, self.kind, k_major=not self.transposed[1])
            for x in set(self.b)
        }
        self.touched = [b[x][0].reshape(-1) for x in self.b]
        if self.a_values is not None:
            a = a_fragment(self.a_values, self.kind)
        else:
            rows = {
                x: operand(block, x, 64, self.kind, k_major=not self.transposed[0])
                for x in set(self.a)
            }
            mine = [slice(16 * w, 16 * w + 16) for w in self.warps % WARPGROUP]
            a = np.stack([rows[x][1][of] for x, of in zip(self.a, mine, strict=True)])
            for i, (x, of) in enumerate(zip(self.a, mine, strict=True)):
                self.touched[i] = np.append(self.touched[i], rows[x][0][of])
        product = np.stack([x @ b[y][1].T for x, y in zip(a, self.b, strict=True)])
        if self.before is not None:
            is_product = isinstance(self.before, Product)
            product = product + (self.before.run(block) if is_product else self.before)
        self.result = product
        return product

    def deliver(self, block: Block, cohort: Cohort) -> None:
        result = self.run(block)
        if block.races is not None:
            for warp, at, since in zip(self.warps, self.touched, self.since, strict=True):
                block.races.read(np.unique(at >> 2), int(warp), since)
        if any(cohort.r[slot] is not value for slot, value in self.read.items()):
            raise Fault("a register was written while wgmma reads it")
        if all(cohort.in_flight.get(slot) is self for slot in self.slots):
            for slot, value in zip(self.slots, c_registers(result), strict=True):
                if cohort.r[slot] is not None:
                    raise Fault("a register was written while wgmma writes it")
                cohort.r[slot] = value
                del cohort.in_flight[slot]


def warpgroup(site: Site) -> Operation:
    """wgmma: products, their groups and waits."""
    if "fence" in site.parts:
        return lambda _block, _c: None
    if "commit_group" in site.parts:
        return lambda _block, c: c.products.commit()
    if "wait_group" in site.parts:
        left = int(site.operands[0])
        return lambda block, c: c.products.wait(left, block, c)
    to, a, b, accumulates, *more = site.operands
    kind, signs, turned = site.parts[-1], more[:2], [x == "1" for x in more[2:]]
    known = re.search(r"m64n\d+k16\.f32\.(bf16\.bf16|f16\.f16)$", site.name)
    if not known or signs != ["1", "1"]:
        raise site.unknown()
    slots, second, adds = site.all_to(to), site.of(b, 8), site.of(accumulates, 0)
    first = site.all_of(a, 4 if isinstance(a, tuple) else 8)
    transposed = (turned[0] if len(turned) == 2 else False, turned[-1])

    def run(block: Block, c: Cohort) -> None:
        values: Any = c.r[adds]
        if (values != values[0]).any():
            raise NotImplementedError("warps that differ in whether they add")
        product = Product(block, c, slots, first, second, adds=bool(values[0]), kind=kind,
                          transposed=transposed)  # fmt: skip
        c.products.started.append(product)
        if block.is_now():
            product.run(block)

    return run
