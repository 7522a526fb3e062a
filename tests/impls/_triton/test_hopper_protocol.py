"""The barriers of hopper_forward.py, exhaustively: every order in which a producer warp, tiles that
TMA lands at any time, and two consumers of two warps each can take their steps.

The steps are those of the source, by the names of its barriers. A wait asks for a number of
completed phases, as hardware does: by parity alone. Warps of a consumer meet only at the barrier
that Triton puts before an arrival, which warp 0 makes alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

CONSUMERS, WARPS = 2, 2
Step = tuple[str, Any, int]
"""wait (barrier, completed phases), copy ((barrier, tile), 0), arrive (barrier, 0), read or leave
(tile, 0), meet (consumer, 0).
"""


def producer(units: Sequence[int], stages: int) -> Iterator[Step]:
    """`units`: the tiles of keys of each."""
    number = loaded = 0
    for tiles in units:
        if tiles:
            for c in range(CONSUMERS):
                yield "wait", f"q_empty{c}", loaded
                yield "copy", (f"q_full{c}", f"q{c}"), 0
            loaded += 1
        for i in range(tiles + 1):
            for name, tile in (("k", i), ("v", i - 1)):
                if 0 <= tile < tiles:
                    place, uses = (number + tile) % stages, (number + tile) // stages
                    yield "wait", f"{name}_empty{place}", uses
                    yield "copy", (f"{name}_full{place}", f"{name}{place}"), 0
        number += tiles


def consumer(
    units: Sequence[int], stages: int, c: int, warp: int, *, meets: bool
) -> Iterator[Step]:
    """One warp of it. Products read from their start until they are waited for."""
    number = 0

    def arrive(barrier: str) -> Iterator[Step]:
        if meets:
            yield "meet", c, 0
        if warp == 0:
            yield "arrive", barrier, 0

    def scores(tile: int) -> Iterator[Step]:
        yield "wait", f"k_full{tile % stages}", tile // stages + 1
        yield "wait", f"turn{c}", tile + (c > 0)
        yield "read", f"k{tile % stages}", 0
        yield "read", f"q{c}", 0

    def values(tile: int) -> Iterator[Step]:
        yield "wait", f"v_full{tile % stages}", tile // stages + 1
        yield "read", f"v{tile % stages}", 0

    def scores_done(tile: int) -> Iterator[Step]:
        yield "leave", f"k{tile % stages}", 0
        yield "leave", f"q{c}", 0
        yield from arrive(f"k_empty{tile % stages}")

    def values_done(tile: int) -> Iterator[Step]:
        yield "leave", f"v{tile % stages}", 0
        yield from arrive(f"v_empty{tile % stages}")

    for loaded, tiles in enumerate(filter(None, units), 1):
        yield "wait", f"q_full{c}", loaded
        for i in range(tiles):
            yield from scores(number)
            if i:
                yield from values(number - 1)
            yield from arrive(f"turn{1 - c}")
            yield from scores_done(number)
            if i:
                yield from values_done(number - 1)
            number += 1
        yield from arrive(f"q_empty{c}")
        yield from values(number - 1)
        yield from values_done(number - 1)


class State(NamedTuple):
    """`at`: each agent's next step. `done` and `missing`: phases completed and arrivals that the
    one under way lacks, by barrier. `filling` and `readers`: of each tile. `flying`: copies under
    way, of a barrier and a tile. `met`: warps that wait, as bits, by consumer.
    """

    at: tuple[int, ...]
    done: tuple[int, ...]
    missing: tuple[int, ...]
    filling: tuple[int, ...]
    readers: tuple[int, ...]
    flying: frozenset[tuple[int, int]]
    met: tuple[int, ...]


@dataclass(slots=True)
class Found:
    """The first fault, "" if there is none, and how many states were seen."""

    fault: str
    states: int


class Model:
    def __init__(self, units: Sequence[int], stages: int, *, meets: bool = True) -> None:
        agents = [producer(units, stages)]
        for c in range(CONSUMERS):
            agents += [consumer(units, stages, c, warp, meets=meets) for warp in range(WARPS)]
        places = range(stages)
        self.barriers = {
            name: number
            for number, name in enumerate(
                [f"{x}{c}" for x in ("q_full", "q_empty", "turn") for c in range(CONSUMERS)]
                + [f"{x}{s}" for x in ("k_full", "k_empty", "v_full", "v_empty") for s in places]
            )
        }
        tiles = [f"q{c}" for c in range(CONSUMERS)] + [f"{x}{s}" for x in "kv" for s in places]
        self.tiles = {name: number for number, name in enumerate(tiles)}
        self.arrivals = tuple(
            CONSUMERS if name[:7] in ("k_empty", "v_empty") else 1 for name in self.barriers
        )
        self.steps = [list(agent) for agent in agents]

    def search(self) -> Found:
        """All states that can be reached, unless one is a fault."""
        start = State(
            (0,) * len(self.steps), (0,) * len(self.arrivals), self.arrivals,
            (0,) * len(self.tiles), (0,) * len(self.tiles), frozenset(), (0,) * CONSUMERS,
        )  # fmt: skip
        seen, open_ = {start}, [start]
        while open_:
            state = open_.pop()
            following = [self._landed(state, *copy) for copy in state.flying]
            for agent, steps in enumerate(self.steps):
                if state.at[agent] < len(steps):
                    after = self._after(state, agent, *steps[state.at[agent]])
                    if isinstance(after, str):
                        return Found(after, len(seen))
                    following += [after] if after else []
            if not following and list(state.at) != [len(steps) for steps in self.steps]:
                return Found("deadlock", len(seen))
            for after in following:
                if after not in seen:
                    seen.add(after)
                    open_.append(after)
        return Found("", len(seen))

    def _after(self, s: State, agent: int, kind: str, what: Any, count: int) -> State | str | None:
        """The state behind a step; None if the agent waits, a text if the step is a fault."""
        ahead = s._replace(at=changed(s.at, agent, 1))
        if kind == "wait":
            behind = s.done[self.barriers[what]] - count
            if behind > 0:
                return f"the wait for phase {count} of {what} comes too late: it may never end"
            if behind < -1:
                return f"phase {count} of {what} is taken for an earlier one"
            return ahead if behind == 0 else None
        if kind == "copy":
            barrier, tile = self.barriers[what[0]], self.tiles[what[1]]
            if s.filling[tile] or s.readers[tile]:
                return f"{what[1]} is overwritten"
            return ahead._replace(
                filling=changed(s.filling, tile, 1), flying=s.flying | {(barrier, tile)}
            )
        if kind == "read" and s.filling[self.tiles[what]]:
            return f"{what} is read while it is filled"
        if kind in ("read", "leave"):
            by = 1 if kind == "read" else -1
            return ahead._replace(readers=changed(s.readers, self.tiles[what], by))
        if kind == "arrive":
            return self._arrived(ahead, self.barriers[what])
        return self._met(s, agent, what)

    def _met(self, s: State, agent: int, c: int) -> State | None:
        bit = 1 << (agent - 1) % WARPS
        if s.met[c] & bit:
            return None
        if s.met[c] | bit != (1 << WARPS) - 1:
            return s._replace(met=changed(s.met, c, bit))
        at = s.at
        for warp in range(WARPS):
            at = changed(at, 1 + c * WARPS + warp, 1)
        return s._replace(at=at, met=changed(s.met, c, -s.met[c]))

    def _landed(self, s: State, barrier: int, tile: int) -> State:
        landed = s._replace(
            filling=changed(s.filling, tile, -1), flying=s.flying - {(barrier, tile)}
        )
        return self._arrived(landed, barrier)

    def _arrived(self, s: State, barrier: int) -> State:
        if s.missing[barrier] > 1:
            return s._replace(missing=changed(s.missing, barrier, -1))
        back = self.arrivals[barrier] - s.missing[barrier]
        return s._replace(
            done=changed(s.done, barrier, 1), missing=changed(s.missing, barrier, back)
        )


def changed(numbers: tuple[int, ...], place: int, by: int) -> tuple[int, ...]:
    return (*numbers[:place], numbers[place] + by, *numbers[place + 1 :])


@pytest.mark.long
@pytest.mark.parametrize(
    ("units", "stages"), [((3, 2), 1), ((1, 0, 1), 1), ((3, 2), 2), ((4, 2), 3)], ids=str
)
def test_no_order_ends_in_a_deadlock_or_a_tile_that_is_overwritten(
    units: tuple[int, ...], stages: int
) -> None:
    found = Model(units, stages).search()
    assert found.fault == ""
    assert found.states > 10_000


@pytest.mark.parametrize(
    ("stages", "fault"),
    [(1, "v0 is overwritten"), (2, "it may never end"), (3, "it may never end")],
)
def test_warps_that_do_not_meet_before_an_arrival_are_found(stages: int, fault: str) -> None:
    assert fault in Model((4, 2), stages, meets=False).search().fault
