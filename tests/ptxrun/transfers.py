"""Instructions that move data: loads and stores, ldmatrix and stmatrix, cp.async and TMA."""

import re
from typing import Any

import numpy as np

from .block import Block, Cohort
from .code import TYPES, Masked, Operation, Site
from .memory import RAW, Fault, aligned
from .races import WARP, by_warp, words_of
from .text import BYTES

U16, U32, U64 = np.uint16, np.uint32, np.uint64


def extended(value: np.ndarray, kind: str, size: int) -> np.ndarray:
    """Raw values of a type, as registers of `size` bytes."""
    if BYTES[kind] == size:
        return value
    return value.view(TYPES[kind]).astype(f"{'i' if kind[0] == 's' else 'u'}{size}").view(RAW[size])


def loaded(site: Site) -> Masked:
    space, kind = site.parts[1], site.kind
    to, source = site.operands
    if space == "param":
        slot = site.to(to)
        value = extended(site.code.parameters[source.base], kind, site.bytes_of(to))
        return lambda _block, c, _mask: c.r.__setitem__(slot, value)
    if space not in ("global", "shared"):
        raise site.unknown()
    names = to if isinstance(to, tuple) else (to,)
    targets = [(site.to(name), site.bytes_of(name)) for name in names]
    size, shared = BYTES[kind], space == "shared"
    at = site.address(source, 4 if shared else 8)

    def run(block: Block, c: Cohort, mask: np.ndarray) -> None:
        address = np.broadcast_to(at(c), (c.n,))[mask]
        aligned(address, size * len(targets))
        if shared and block.races is not None:
            for warp, words in by_warp(address, c.lanes[mask], size * len(targets)):
                block.races.read(words, warp)
        memory = block.shared if shared else block.memory
        for i, (slot, wide) in enumerate(targets):
            value = extended(memory.load(address + address.dtype.type(size * i), size), kind, wide)
            if not mask.all():
                whole = np.zeros(c.n, RAW[wide])
                if c.r[slot] is not None:
                    whole[:] = c.r[slot]
                whole[mask] = value
                value = whole
            c.r[slot] = value

    return run


def stored(site: Site) -> Masked:
    space, (to, source) = site.parts[1], site.operands
    if space not in ("global", "shared"):
        raise site.unknown()
    size, shared = BYTES[site.kind], space == "shared"
    sources = site.all_of(source, size)
    at = site.address(to, 4 if shared else 8)

    def run(block: Block, c: Cohort, mask: np.ndarray) -> None:
        address = np.broadcast_to(at(c), (c.n,))[mask]
        aligned(address, size * len(sources))
        values = np.stack([c.per_lane(s).astype(RAW[size])[mask] for s in sources], axis=-1)
        every = address[:, None] + (np.arange(len(sources)) * size).astype(address.dtype)
        if not shared:
            block.memory.store(every, size, values)
            return
        warps = c.lanes[mask] // WARP
        for warp in np.unique(warps):
            write_shared(block, int(warp), every[warps == warp], size, values[warps == warp])

    return run


def write_shared(
    block: Block, warp: int, addresses: np.ndarray, size: int, values: np.ndarray
) -> None:
    """Several warps may write the same values: that is no race."""
    if block.races is not None and (block.shared.load(addresses, size) != values).any():
        block.races.write(words_of(addresses.reshape(-1), size), warp)
    block.shared.store(addresses, size, values)
    block.shared.written(addresses, warp)


def matrix_rows(c: Cohort, addresses: np.ndarray, count: int) -> np.ndarray:
    """Addresses of the words, [warps, count, 8, 4]: a lane gives the row of 16 bytes of a matrix of
    8 x 8 elements.
    """
    rows = np.broadcast_to(addresses, (c.n,)).reshape(-1, WARP)[:, : 8 * count]
    aligned(rows, 16)
    return (rows[..., None] + np.arange(0, 16, 4, U32)).reshape(-1, count, 8, 4)


def transposed(words: np.ndarray) -> np.ndarray:
    """Each matrix of 8 x 8 elements of 2 bytes, in words."""
    return np.ascontiguousarray(words.view(U16).swapaxes(-1, -2)).view(U32)


def matrix_loaded(site: Site) -> Operation:
    """ldmatrix: each lane gets two neighbours of a row, as mma wants them."""
    targets, turned = site.all_to(site.operands[0]), "trans" in site.parts
    at = site.address(site.operands[1], 4)

    def run(block: Block, c: Cohort) -> None:
        c.need_whole_warps("ldmatrix")
        addresses = matrix_rows(c, at(c), len(targets))
        if block.races is not None:
            for warp, mine in zip(c.warps, addresses, strict=True):
                block.races.read(words_of(mine.reshape(-1), 4), int(warp))
        words = block.shared.load(addresses, 4)
        words = transposed(words) if turned else words
        for i, slot in enumerate(targets):
            c.r[slot] = np.ascontiguousarray(words[:, i]).reshape(-1)

    return run


def matrix_stored(site: Site) -> Operation:
    """stmatrix: the inverse of ldmatrix."""
    sources, turned = site.all_of(site.operands[1], 4), "trans" in site.parts
    at = site.address(site.operands[0], 4)

    def run(block: Block, c: Cohort) -> None:
        c.need_whole_warps("stmatrix")
        words = np.stack([c.per_lane(s).reshape(-1, 8, 4) for s in sources], axis=1)
        words = transposed(words) if turned else words
        addresses = matrix_rows(c, at(c), len(sources))
        for i, warp in enumerate(c.warps):
            write_shared(block, int(warp), addresses[i], 4, words[i])

    return run


class Copy:
    """One cp.async of some threads. `given`: bytes that are read; the rest is zeros."""

    def __init__(self, block: Block, to: np.ndarray, source: np.ndarray, size: int,
                 given: np.ndarray, lanes: np.ndarray) -> None:  # fmt: skip
        aligned(to, size)
        aligned(source[given > 0], size)
        self.to, self.source, self.size, self.given, self.lanes = to, source, size, given, lanes
        self.since = None if block.races is None else block.races.clocks.copy()
        self.done = False

    def run(self, block: Block) -> None:
        if self.done:
            return
        self.done = True
        for at in range(0, self.size, 4):
            words, read = np.zeros(len(self.to), U32), self.given > at
            words[read] = block.memory.load(self.source[read] + U64(at), 4)
            block.shared.store(self.to + U32(at), 4, words)
            if block.strict:
                block.shared.written(self.to + U32(at), int(self.lanes[0]) // WARP)

    def deliver(self, block: Block, cohort: Cohort) -> None:
        self.run(block)
        if self.since is not None:
            for warp, words in by_warp(self.to, self.lanes, self.size):
                block.races.write(words, warp, self.since[warp])


def asynchronous(site: Site) -> Masked:
    """cp.async with its groups and waits, and TMA."""
    name, operands = site.name, site.operands
    if name == "cp.async.commit_group":
        return lambda _block, c, _mask: c.copies.commit()
    if name in ("cp.async.wait_group", "cp.async.wait_all"):
        left = int(operands[0]) if operands else 0
        return lambda block, c, _mask: c.copies.wait(left, block, c)
    if name.startswith("cp.async.bulk.tensor"):
        return tile_copied(site)
    if not re.fullmatch(r"cp\.async\.c[ag]\.shared(::cta)?\.global", name):
        raise site.unknown()
    to, source = site.address(operands[0], 4), site.address(operands[1], 8)
    size = int(operands[2], 0)
    given = site.of(operands[3] if len(operands) > 3 else operands[2], 4)

    def run(block: Block, c: Cohort, mask: np.ndarray) -> None:
        targets, sources, read = (
            np.broadcast_to(x, (c.n,))[mask] for x in (to(c), source(c), c.r[given])
        )
        copy = Copy(block, targets, sources, size, read, c.lanes[mask])
        c.copies.started.append(copy)
        if block.is_now():
            copy.run(block)

    return run


def tile_copied(site: Site) -> Masked:
    """A tile of a tensor into shared memory; an mbarrier counts its bytes."""
    to, source, barrier = site.operands
    if "mbarrier::complete_tx::bytes" not in site.name:
        raise site.unknown()
    target, counted = site.address(to, 4), site.address(barrier, 4)
    described, start = site.of(source.base, 8), [site.of(x, 4) for x in source.coordinates]

    def run(block: Block, c: Cohort, mask: np.ndarray) -> None:
        for lane in np.flatnonzero(mask):

            def of(value: np.ndarray, lane: int = int(lane)) -> int:
                return int(value[lane if value.size > 1 else 0])

            flag, first = of(counted(c)), [of(c.r[x].view(np.int32)) for x in start]
            block.shared.seen_by_async(np.array([flag]))
            lands = landing(
                block, of(c.r[described]), first, of(target(c)), flag, int(c.lanes[lane]) // WARP
            )
            lands() if block.is_now() else block.tiles.append(lands)

    return run


def landing(
    block: Block, described: int, start: list[int], target: int, barrier: int, warp: int
) -> Any:
    if described not in block.maps:
        raise Fault(f"no tensor map at {described}")
    tensor = block.maps[described]
    since = None if block.races is None else block.races.clock(warp)

    def lands() -> None:
        words = tensor.copy(block.memory, block.shared, start, target)
        if block.races is not None:
            block.races.tile_written(words, since, barrier)
        block.mbarrier(barrier).missing -= tensor.bytes()
        block.settle(barrier)

    return lands
