"""A block of threads: its barriers, what is under way in it, and which threads run next.

Threads at the same instruction run together, as a `Cohort`; its registers are arrays over its
threads, or of length 1 where all agree.
"""

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from .memory import Fault, Memory, Shared, TensorMap
from .races import WARP, Races

Moment = Literal["early", "late", "random"]
"""At the start of something asynchronous, at the wait for it, or either."""
LANDS_RATIO = 0.3  # of the steps in which a tile under way lands, at random


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """When copies and products happen, and whether warps run together or in a random order."""

    moment: Moment = "early"
    seed: int = 0

    def __str__(self) -> str:
        return f"random {self.seed}" if self.moment == "random" else self.moment


class Pending(Protocol):
    """A copy or product that was started."""

    def run(self, block: "Block") -> object: ...

    def deliver(self, block: "Block", cohort: "Cohort") -> None:
        """At the wait for it."""


class Binding(Protocol):
    """What a block needs of code.py."""

    threads: int
    registers: int
    program: Any

    def initial(self, lanes: np.ndarray, index: int, count: int) -> list[Any]: ...

    def segment(self, start: int) -> tuple[list[Callable[["Block", "Cohort"], None]], int]: ...


@dataclass(slots=True)
class Mbarrier:
    """`pending` arrivals and `missing` bytes of the phase under way; phases count from 0."""

    count: int
    pending: int
    missing: int = 0
    phase: int = 0


class Groups:
    """Asynchronous work: what was started, and the groups committed, oldest first."""

    def __init__(self) -> None:
        self.started: list[Pending] = []
        self.groups: list[list[Pending]] = []

    def __bool__(self) -> bool:
        return bool(self.started) or any(self.groups)

    def commit(self) -> None:
        self.groups.append(self.started)
        self.started = []

    def wait(self, left: int, block: "Block", cohort: "Cohort") -> None:
        while len(self.groups) > left:
            for one in self.groups.pop(0):
                one.deliver(block, cohort)


class Cohort:
    """Threads at the same instruction. `in_flight`: the product that will write a register."""

    def __init__(self, lanes: np.ndarray, r: list[Any], pc: int, registers: int) -> None:
        self.lanes, self.r, self.pc, self.registers = lanes, r, pc, registers
        self.n = len(lanes)
        self.warps = lanes[::WARP] // WARP
        whole = np.arange(WARP) + self.warps[:, None] * WARP
        self.whole = self.n == whole.size and bool((lanes == whole.reshape(-1)).all())
        self.done = False
        self.waits: Callable[[], bool] | None = None  # True once it may go on
        self.why = ""
        self.copies, self.products = Groups(), Groups()
        self.in_flight: dict[int, Any] = {}

    def idle(self) -> bool:
        return not (self.copies or self.products)

    def read(self, slot: int) -> np.ndarray:
        """Of all threads, or one number for all."""
        value = self.r[slot]
        if value is None:
            raise Fault("reads a register before it is written, or while wgmma writes it")
        return value

    def per_lane(self, slot: int) -> np.ndarray:
        return np.broadcast_to(self.read(slot), (self.n,))

    def per_warp(self, slot: int) -> np.ndarray:
        return self.per_lane(slot)[::WARP]

    def need_whole_warps(self, name: str) -> None:
        if not self.whole:
            raise Fault(f"{name} by a part of a warp")

    def split(self, first: np.ndarray) -> "Cohort":
        """Keeps the threads `first`; returns the others as a new one."""
        if not self.idle():
            raise NotImplementedError("threads part while copies or products are under way")
        kept, other = (
            [x if x is None or x.size == 1 else x[which] for x in self.r]
            for which in (first, ~first)
        )
        rest = Cohort(self.lanes[~first], other, self.pc, self.registers)
        Cohort.__init__(self, self.lanes[first], kept, self.pc, self.registers)
        return rest

    def join(self, other: "Cohort") -> None:
        lanes = np.concatenate([self.lanes, other.lanes])
        order = np.argsort(lanes)

        def both(a: np.ndarray | None, b: np.ndarray | None) -> np.ndarray | None:
            if a is b or a is None or b is None:
                return a if a is b else None
            if a.size == b.size == 1 and a[0] == b[0]:
                return a
            wide = np.broadcast_to(a, (self.n,)), np.broadcast_to(b, (other.n,))
            return np.concatenate(wide)[order]

        r = [both(a, b) for a, b in zip(self.r, other.r, strict=True)]
        Cohort.__init__(self, lanes[order], r, self.pc, self.registers)


class Block:
    """One block of a launch. `strict` also asks for the fences that Triton's own pipelines leave
    out, though the documentation wants them: between mbarrier.init and TMA, and (Triton 3.6)
    between cp.async and wgmma; and that no mbarrier is set up twice.
    """

    def __init__(
        self, code: Binding, memory: Memory, shared_bytes: int, *, index: int = 0, count: int = 1,
        maps: dict[int, TensorMap] | None = None, timing: Timing | None = None,
        races: bool = False, strict: bool = False,
    ) -> None:  # fmt: skip
        self.code, self.memory, self.maps = code, memory, maps or {}
        self.shared = Shared(shared_bytes)
        self.timing, self.strict = timing or Timing(), strict
        self.races = Races(code.threads // WARP, shared_bytes) if races else None
        self.random = random.Random(f"{self.timing.seed}/{index}")
        self.mbarriers: dict[int, Mbarrier] = {}
        self.bars: dict[int, list[Cohort]] = defaultdict(list)
        self.tiles: list[Callable[[], None]] = []  # of TMA, under way
        self.free_registers = 0
        self.segments: set[int] = set()  # that were executed
        lanes = np.arange(code.threads)
        apart = self.timing.moment == "random"
        self.cohorts = [
            Cohort(part, code.initial(part, index, count), 0, code.registers)
            for part in (lanes.reshape(-1, WARP) if apart else [lanes])
        ]

    def is_now(self) -> bool:
        """Whether something asynchronous happens at its start."""
        moment = self.timing.moment
        return moment == "early" or (moment == "random" and self.random.random() < 0.5)

    # ---- barriers ----

    def mbarrier(self, address: int) -> Mbarrier:
        if address not in self.mbarriers:
            raise Fault(f"no mbarrier at {address}")
        return self.mbarriers[address]

    def arrive(self, address: int, warp: int, *, times: int, expected: int = 0) -> None:
        """`expected`: bytes that the phase will wait for, too."""
        barrier = self.mbarrier(address)
        if self.races is not None:
            self.races.arrive(address, warp)
        barrier.missing += expected
        barrier.pending -= times
        if barrier.pending < 0:
            raise Fault(f"more arrivals than the {barrier.count} of the mbarrier at {address}")
        self.settle(address)

    def settle(self, address: int) -> None:
        """Ends the phase if nothing is missing."""
        barrier = self.mbarrier(address)
        if barrier.pending == 0 and barrier.missing == 0:
            barrier.phase, barrier.pending = barrier.phase + 1, barrier.count
            if self.races is not None:
                self.races.complete(address)

    def bar(self, cohort: Cohort, number: int, count: int) -> None:
        """bar.sync: wait for `count` threads."""
        waiting = self.bars[number]
        waiting.append(cohort)
        cohort.waits, cohort.why = (lambda: False), f"bar.sync {number}, {count}"
        arrived = sum(one.n for one in waiting)
        if arrived > count:
            raise Fault(f"{arrived} threads at bar.sync {number}, {count}")
        if arrived == count:
            warps = np.concatenate([one.warps for one in waiting])
            if self.races is not None:
                self.races.together(warps)
            self.shared.publish(warps)
            for one in waiting:
                one.waits = None
            waiting.clear()

    # ---- running ----

    def run(self) -> None:
        """Until all threads have ended; Fault if they cannot, with a note where."""
        with np.errstate(all="ignore"):
            while self.cohorts:
                self._step()
            while self.tiles:
                self.tiles.pop(0)()

    def _step(self) -> None:
        for one in self.cohorts:
            if one.waits is not None and one.waits():
                one.waits = None
        ready = [one for one in self.cohorts if one.waits is None]
        at_random = self.timing.moment == "random"
        if self.tiles and (not ready or (at_random and self.random.random() < LANDS_RATIO)):
            self.tiles.pop(self.random.randrange(len(self.tiles)) if at_random else 0)()
            return
        if not ready:
            raise Fault("deadlock: " + "; ".join(map(self._state, self.cohorts)))
        cohort = self._chosen(ready)
        self.segments.add(cohort.pc)
        start = cohort.pc
        operations, cohort.pc = self.code.segment(start)
        place = start
        try:
            for place, operation in enumerate(operations, start):  # noqa: B007 - for the note
                operation(self, cohort)
        except Exception as error:
            one = self.code.program.code[place]
            error.add_note(f"at PTX line {one.line}, {one.source}: {one.name}")
            raise
        if cohort.done:
            self.cohorts.remove(cohort)

    def _chosen(self, ready: list[Cohort]) -> Cohort:
        if self.timing.moment == "random":
            parted = [one for one in ready if not one.whole]
            if not parted:
                return self.random.choice(ready)
            # Threads of a warp that parted join again as soon as they can.
            first = min(parted, key=_by_place)
            ready = [one for one in parted if one.lanes[0] // WARP == first.lanes[0] // WARP]
        first = min(ready, key=_by_place)
        for other in ready:
            alike = other.pc == first.pc and other.registers == first.registers
            if other is not first and alike and first.idle() and other.idle():
                first.join(other)
                self.cohorts.remove(other)
        return first

    def _state(self, cohort: Cohort) -> str:
        one = self.code.program.code[cohort.pc - 1]
        threads = f"threads {cohort.lanes[0]}..{cohort.lanes[-1]}"
        return f"{threads} at {one.source} (PTX line {one.line}) wait for {cohort.why}"


def _by_place(cohort: Cohort) -> int:
    return cohort.pc
