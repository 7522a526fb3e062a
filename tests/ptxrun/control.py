"""Instructions that order threads, exchange between the lanes of a warp, and jump."""

import numpy as np

from .block import Block, Cohort, Mbarrier
from .code import Masked, Operation, Site
from .memory import Fault, aligned
from .races import WARP


def mbarrier(site: Site) -> Masked:
    name = site.name
    if "try_wait" in name or "test_wait" in name:
        return waited(site)
    if name.startswith("mbarrier.init"):
        return set_up(site)
    if name.startswith("mbarrier.inval"):
        at = site.address(site.operands[0], 4)
        return lambda block, c, mask: [block.mbarriers.pop(x) for x in addresses(c, at(c), mask)]
    expects = "expect_tx" in name
    if not expects and "arrive" not in name:
        raise site.unknown()
    operands = [x for x in site.operands if x != "_"]
    at = site.address(operands[0], 4)
    number = site.of(operands[1] if len(operands) > 1 else "1", 4)

    def arrive(block: Block, c: Cohort, mask: np.ndarray) -> None:
        values, warps = c.per_lane(number)[mask], c.lanes[mask] // WARP
        for one, value, warp in zip(addresses(c, at(c), mask), values, warps, strict=True):
            if expects:
                times = int("arrive" in name)
                block.arrive(one, int(warp), times=times, expected=int(value))
            else:
                block.arrive(one, int(warp), times=int(value))

    return arrive


def addresses(c: Cohort, at: np.ndarray, mask: np.ndarray) -> list[int]:
    return [int(x) for x in np.broadcast_to(at, (c.n,))[mask]]


def waited(site: Site) -> Masked:
    """try_wait: has the phase of this parity ended? If not, the threads sleep until it has."""
    to, at = site.to(site.operands[0]), site.address(site.operands[1], 4)
    wanted = site.of(site.operands[2], 4)

    def run(block: Block, c: Cohort, _mask: np.ndarray) -> None:
        address, parity = at(c), c.r[wanted]
        if (address != address[0]).any() or (parity != parity[0]).any():
            raise NotImplementedError("threads wait for several mbarriers")
        barrier, odd = int(address[0]), int(parity[0]) & 1

        def has_ended() -> bool:
            return block.mbarrier(barrier).phase & 1 != odd

        c.r[to] = np.array([has_ended()])
        if not has_ended():
            c.waits, c.why = has_ended, f"mbarrier {barrier} phase {odd}"
        elif block.races is not None:
            block.races.waited(barrier, c.warps)

    return run


def set_up(site: Site) -> Masked:
    at, count = site.address(site.operands[0], 4), site.of(site.operands[1], 4)

    def run(block: Block, c: Cohort, mask: np.ndarray) -> None:
        for one, times in zip(addresses(c, at(c), mask), c.per_lane(count)[mask], strict=True):
            aligned(np.array([one]), 8)
            if block.strict:
                if one in block.mbarriers:
                    raise Fault(f"mbarrier {one} is set up twice")
                block.shared.written(np.array([one]), int(c.warps[0]))
            block.mbarriers[one] = Mbarrier(int(times), int(times))

    return run


def barrier(site: Site) -> Operation:
    """bar.sync; bar.warp.sync needs nothing here, as lanes of a warp run together."""
    if site.name == "bar.warp.sync":
        return lambda _block, c: c.need_whole_warps("bar.warp.sync")
    if site.name not in ("bar.sync", "barrier.sync", "barrier.sync.aligned"):
        raise site.unknown()
    numbers = [site.of(x, 4) for x in site.operands]

    def run(block: Block, c: Cohort) -> None:
        c.need_whole_warps("bar.sync")
        number, *count = (int(c.r[x][0]) for x in numbers)
        block.bar(c, number, count[0] if count else block.code.threads)

    return run


def registers(site: Site) -> Operation:
    """setmaxnreg: give registers back to the block's pool, or wait until it has enough."""
    wanted, takes = int(site.operands[0]), "inc" in site.parts

    def run(block: Block, c: Cohort) -> None:
        needed = (wanted - c.registers) * c.n
        if needed and takes != (needed > 0):
            raise Fault(f"setmaxnreg {site.parts[1]} from {c.registers} to {wanted}")

        def taken() -> bool:
            if block.free_registers < needed:
                return False
            block.free_registers -= needed
            c.registers = wanted
            return True

        if not taken():
            c.waits, c.why = taken, f"{needed} registers; {block.free_registers} are free"

    return run


def fence(site: Site) -> Operation:
    if site.name.startswith("fence.proxy.async"):
        return lambda block, c: block.shared.fence(c.warps)
    return nothing(site)


def nothing(_site: Site) -> Operation:
    return lambda _block, _c: None


def shuffled(site: Site) -> Operation:
    """shfl.sync of whole warps; a lane beyond the warp gives one's own value."""
    how = site.parts[2]
    to, source, by, *_ = site.operands
    slot, value, number = site.to(to.split("|")[0]), site.of(source, 4), site.of(by, 4)

    def run(_: Block, c: Cohort) -> None:
        c.need_whole_warps("shfl")
        lane = np.arange(WARP)
        n = c.per_lane(number).reshape(-1, WARP).astype(np.int64)
        place = {"bfly": lane ^ n, "idx": n & 31, "down": lane + n, "up": lane - n}[how]
        place = np.where((place < 0) | (place >= WARP), lane, place)
        values = c.per_lane(value).reshape(-1, WARP)
        c.r[slot] = np.take_along_axis(values, place, axis=1).reshape(-1)

    return run


def elected(site: Site) -> Operation:
    """elect.sync: the first lane."""
    number, chosen = site.operands[0].split("|")
    slot, predicate = site.to(number), site.to(chosen)

    def run(_: Block, c: Cohort) -> None:
        c.need_whole_warps("elect")
        c.r[predicate] = c.lanes % WARP == 0
        if slot >= 0:
            c.r[slot] = np.zeros(1, np.uint32)

    return run


def jump(site: Site) -> Masked:
    """Threads that do not jump go on as a cohort of their own."""
    target = site.code.program.label(site.one.scope, site.operands[0])

    def run(block: Block, c: Cohort, mask: np.ndarray) -> None:
        if not mask.all():
            block.cohorts.append(c.split(mask))
        c.pc = target

    return run


def indexed_jump(site: Site) -> Masked:
    """brx.idx: each thread to the label of its number."""
    index, table = site.operands
    program, slot = site.code.program, site.of(index, 4)
    targets = [program.label(0, one) for one in program.targets[table]]

    def run(block: Block, c: Cohort, _mask: np.ndarray) -> None:
        while True:
            first = c.per_lane(slot)[0]
            same = c.per_lane(slot) == first
            rest = None if same.all() else c.split(same)
            c.pc = targets[int(first)]
            if rest is None:
                return
            block.cohorts.append(rest)
            c = rest

    return run


def ended(_site: Site) -> Masked:
    def run(block: Block, c: Cohort, mask: np.ndarray) -> None:
        if not mask.all():
            raise NotImplementedError("ret by a part of the threads")
        if c.products:
            raise Fault("ends while products of warpgroups are under way")
        c.done = True

    return run
