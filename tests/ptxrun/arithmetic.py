"""Instructions that compute each thread's result from its own registers."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .block import Block, Cohort
from .code import TYPES, Operation, Site
from .matrices import narrowed, widened
from .memory import PARAMETER_BASE, RAW, Fault
from .text import BYTES

U16, U32 = np.uint16, np.uint32
Function = Callable[..., Any]


def elementwise(site: Site, function: Function, kinds: Sequence[str], result: str) -> Operation:
    """The first operand gets `function` of the others, which are read as `kinds`."""
    to = site.to(site.operands[0])
    sources = [site.of(x, BYTES[kind]) for x, kind in zip(site.operands[1:], kinds, strict=True)]
    read = [(source, TYPES[kind]) for source, kind in zip(sources, kinds, strict=True)]
    raw = np.bool_ if result == "pred" else RAW[BYTES[result]]

    def run(_: Block, c: Cohort) -> None:
        values = [c.read(source).view(kind) for source, kind in read]
        c.r[to] = np.ascontiguousarray(function(*values)).view(raw)

    return run


def same(
    function: Function, count: int, *, of_floats: Function | None = None,
    of_predicates: Function | None = None,
) -> Callable[[Site], Operation]:  # fmt: skip
    """Operands and result have the type that the name ends with."""

    def compiler(site: Site) -> Operation:
        kind, chosen = site.kind, function
        if kind == "pred":
            chosen = of_predicates or function
        elif is_float(kind):
            chosen = of_floats or function
        return elementwise(site, chosen, [kind] * count, kind)

    return compiler


def is_float(kind: str) -> bool:
    return kind.startswith("f")


def twice(kind: str) -> str:
    """The type of twice the bits."""
    return f"{kind[0]}{2 * int(kind[1:])}"


def multiplied(site: Site) -> Operation:
    kind = site.kind
    if is_float(kind) or "lo" in site.parts:
        return elementwise(site, np.multiply, [kind] * 2, kind)
    bits = int(kind[1:])
    if bits == 64:
        raise site.unknown()
    wide, narrow = TYPES[twice(kind)], TYPES[kind]
    if "wide" in site.parts:
        return elementwise(
            site, lambda a, b: a.astype(wide) * b.astype(wide), [kind] * 2, twice(kind)
        )

    def upper(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return (a.astype(wide) * b.astype(wide) >> bits).astype(narrow)

    return elementwise(site, upper, [kind] * 2, kind)


def multiplied_added(site: Site) -> Operation:
    kind = site.kind
    if "wide" not in site.parts:
        return elementwise(site, lambda a, b, c: a * b + c, [kind] * 3, kind)
    wide = TYPES[twice(kind)]
    return elementwise(
        site,
        lambda a, b, c: a.astype(wide) * b.astype(wide) + c,
        [kind, kind, twice(kind)],
        twice(kind),
    )


def fused(site: Site) -> Operation:
    if site.kind != "f32":
        raise site.unknown()
    return elementwise(
        site, lambda a, b, c: (a.astype(np.float64) * b + c).astype(np.float32), ["f32"] * 3, "f32"
    )


def quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Towards zero."""
    if (b == 0).any():
        raise Fault("division by zero")
    if a.dtype.kind == "u":
        return a // b
    sign = np.where((a < 0) != (b < 0), -1, 1)
    return (np.abs(a.astype(np.int64)) // np.abs(b.astype(np.int64)) * sign).astype(a.dtype)


def remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a - quotient(a, b) * b


def shifted(site: Site) -> Operation:
    """By counts of any size: what is shifted out is gone, only a sign stays."""
    kind = site.kind
    bits, shift = int(kind[1:]), np.left_shift if site.parts[0] == "shl" else np.right_shift
    keeps_sign = site.parts[0] == "shr" and kind[0] == "s"

    def function(a: np.ndarray, count: np.ndarray) -> np.ndarray:
        moved = shift(a, np.minimum(count, U32(bits - 1)).astype(a.dtype))
        return moved if keeps_sign else np.where(count < bits, moved, a.dtype.type(0))

    return elementwise(site, function, [kind, "u32"], kind)


def field(site: Site) -> Operation:
    """bfe: some bits, moved to the lowest place."""
    bits = int(site.kind[1:])

    def function(a: np.ndarray, start: np.ndarray, length: np.ndarray) -> np.ndarray:
        if length.size != 1 or start.size != 1:
            raise site.unknown()
        first, count = int(start[0]) & 255, int(length[0]) & 255
        if count == 0:
            return np.zeros_like(a)
        up, down = max(bits - first - count, 0), bits - min(count, bits - first)
        return a << a.dtype.type(up) >> a.dtype.type(down)

    return elementwise(site, function, [site.kind, "u32", "u32"], site.kind)


COMPARISONS: dict[str, Function] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq,
    "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
    "ne": lambda a, b: (a < b) | (a > b), "neu": operator.ne,
    "num": lambda a, b: ~(np.isnan(a) | np.isnan(b)), "nan": lambda a, b: np.isnan(a) | np.isnan(b),
}  # fmt: skip


def compared(site: Site) -> Operation:
    """setp: a comparison of floats is false with NaN, or true if its name ends with u."""
    how, kind = site.parts[1], site.kind
    if len(site.parts) > 3 + ("ftz" in site.parts):
        raise site.unknown()
    if how in COMPARISONS:
        return elementwise(site, COMPARISONS[how], [kind] * 2, "pred")
    if how[-1] != "u" or how[:-1] not in COMPARISONS:
        raise site.unknown()
    plain, isnan = COMPARISONS[how[:-1]], COMPARISONS["nan"]
    return elementwise(site, lambda a, b: plain(a, b) | isnan(a, b), [kind] * 2, "pred")


def selected(site: Site) -> Operation:
    raw = "b" + site.kind[1:]
    return elementwise(site, lambda a, b, p: np.where(p, a, b), [raw, raw, "pred"], raw)


def moved(site: Site) -> Operation:
    """mov, also of several registers into one and back."""
    to, source = site.operands
    size = BYTES[site.kind]
    targets = site.all_to(to)
    sources = site.all_of(source, size // (len(source) if isinstance(source, tuple) else 1))

    def run(_: Block, c: Cohort) -> None:
        whole = c.read(sources[0])
        if len(sources) > 1:
            parts = np.broadcast_arrays(*map(c.read, sources))
            whole = np.stack(parts, axis=-1).reshape(-1).view(RAW[size])
        if len(targets) == 1:
            c.r[targets[0]] = whole
            return
        parts = whole.view(RAW[size // len(targets)]).reshape(-1, len(targets)).T
        for target, part in zip(targets, parts, strict=True):
            if target >= 0:
                c.r[target] = np.ascontiguousarray(part)

    return run


def converted(site: Site) -> Operation:
    target, source = site.types[:2]
    if target in ("bf16x2", "f16x2"):  # the first source is the upper half
        kind = target.removesuffix("x2")

        def pair(upper: np.ndarray, lower: np.ndarray) -> np.ndarray:
            return narrowed(upper, kind).astype(U32) << 16 | narrowed(lower, kind)

        return elementwise(site, pair, ["f32", "f32"], "b32")
    if target in ("bf16", "f16") and source == "f32":
        return elementwise(site, lambda x: narrowed(x, target), ["f32"], "b16")
    if source in ("bf16", "f16") and target == "f32":
        return elementwise(site, lambda x: widened(x, source), ["b16"], "f32")
    if not {target, source} <= TYPES.keys() or (is_float(source) and not is_float(target)):
        raise site.unknown()
    to, s = site.to(site.operands[0]), site.of(site.operands[1], BYTES[source])
    raw, size = RAW[site.bytes_of(site.operands[0])], BYTES[target]

    def run(_: Block, c: Cohort) -> None:
        value = c.read(s).astype(RAW[BYTES[source]]).view(TYPES[source]).astype(TYPES[target])
        c.r[to] = value.view(RAW[size]).astype(raw)

    return run


def parameter_address(site: Site) -> Operation:
    """cvta: only of parameters; shared memory has no generic addresses here."""
    if site.parts[1] != "param":
        raise site.unknown()
    return elementwise(site, lambda x: x + np.uint64(PARAMETER_BASE), ["u64"], "u64")
