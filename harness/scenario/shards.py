"""A run in shards: which part of a plan each of n runs measures, by the plan alone.

A unit is what must share a device, because its ratios are reported: a group of cases, or the walls
of one problem. Units are never split. Every machine computes the same shards: nothing of it enters.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from ...impls.problem import Problem
from ...impls.shared.mask_counts import unmasked_pairs
from ..cases.case import Case, Group, PlannedStudy, Wall, without
from ..cases.costs import work_flops
from ..files.errors import BadInput, option, shown
from ..rows.plans import sampling_s
from . import Plan

MOST_SHARDS = 100_000
FLOPS_PER_S = {"cpu": 1e11, "cuda": 1e14}
"""Of no machine, for those who only compare cases."""
CALL_S = 4e-5  # of a call that hardly does anything
SCORE_FLOPS = 40  # of a product in fp32, which take as long as a score in softmax, in caches
CASE_S = 0.15  # making inputs, preparing, digests
CASE_AGAIN_S = 0.07  # the same in each further process, and a check of its last call
CHECK_CALLS = 3.0  # one is checked, one is measured in memory; both get fresh memory
WALL_S = 30.0
STUDY_S = 0.5
SHARD = re.compile(r"\s*([0-9]{1,6})\s*/\s*([0-9]{1,6})\s*", re.ASCII)


Unit = Case | Wall | PlannedStudy


class Shard(NamedTuple):
    """Number `number` of `of`, from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


class Units(NamedTuple):
    """Groups, walls and studies: of a whole plan, or of one shard of `whole`. `duplicates`:
    repetitions of problems that the plan leaves out.
    """

    groups: tuple[Group, ...] = ()
    walls: tuple[Wall, ...] = ()
    studies: tuple[PlannedStudy, ...] = ()
    duplicates: int = 0
    whole: "Units | None" = None

    @property
    def cases(self) -> list[Case]:
        return [case for group in self.groups for case in group.cases]

    @property
    def planned(self) -> list[Unit]:
        return [*self.cases, *self.walls, *self.studies]

    def where(self, takes: Callable[[Unit], bool]) -> "Units":
        """What it takes; groups without a case are left out."""
        groups = (replace(group, cases=tuple(filter(takes, group.cases))) for group in self.groups)
        walls, studies = tuple(filter(takes, self.walls)), tuple(filter(takes, self.studies))
        some = tuple(group for group in groups if group.cases)
        return Units(some, walls, studies, self.duplicates)

    @property
    def ids(self) -> list[str]:
        """Of all cases, walls and studies."""
        return [one.id for one in self.planned]


def read_shard(text: str) -> Shard:
    """`2/8` is the second of eight. Raises BadInput."""
    found = SHARD.fullmatch(text)
    number, of = map(int, found.groups()) if found else (0, 0)
    if not 1 <= number <= of <= MOST_SHARDS:
        raise BadInput(
            f"{option('shard')}: found {shown(text)}; wanted NUMBER/COUNT with NUMBER from 1 to"
            f" COUNT; the second of eight is {option('shard', '2/8')}"
        )
    return Shard(number=number, of=of)


def part_of(whole: Units, shard: Shard, plan: Plan, device: str) -> Units:
    """One of `shard.of` parts in which every unit is once; of about equal work, as far as units
    allow.

    The longest unit first, each to the shard that has least so far (Graham 1969: at most 4/3 of the
    shortest possible time). Shards beyond the number of units are empty.
    """
    units = units_of(whole)
    places = assign([weight_of(unit, plan, device) for unit in units], shard.of)
    own = [unit for unit, place in zip(units, places, strict=True) if place == shard.number - 1]
    ids = {one for unit in own for one in unit.ids}
    return whole.where(lambda one: one.id in ids)


def units_of(whole: Units) -> list[Units]:
    """Each unit apart, in the order of the plan."""
    walls: dict[object, list[Wall]] = {}  # of one problem: of all backends
    for wall in whole.walls:
        walls.setdefault((without(wall.problem, "seq_len"), wall.kv_seq_len), []).append(wall)
    return [
        *(Units(groups=(group,)) for group in whole.groups),
        *(Units(walls=tuple(unit)) for unit in walls.values()),
        *(Units(studies=(study,)) for study in whole.studies),
    ]


def weight_of(units: Units, plan: Plan, device: str) -> float:
    """Seconds that units may take on a device of this kind."""
    calls_s = (call_s(case.problem, FLOPS_PER_S[device]) for case in units.cases)
    cases_s = sum(case_s(one, plan, device) for one in calls_s)
    return cases_s + WALL_S * len(units.walls) + STUDY_S * len(units.studies)


def assign(weights: Sequence[float], count: int) -> list[int]:
    """The place, from 0, of each weight: the heaviest first, each where least is so far."""
    loads = [(0.0, 0, place) for place in range(min(count, max(1, len(weights))))]
    heapify(loads)
    places = [0] * len(weights)
    for number in sorted(range(len(weights)), key=lambda one: (-weights[one], one)):
        load, units, place = heappop(loads)
        heappush(loads, (load + weights[number], units + 1, place))
        places[number] = place
    return places


# ---- how long calls and cases may take -----------------------------------------------------------


def call_s(problem: Problem, flops_per_s: float) -> float:
    """How long a call of an exact backend may take: its FLOPs, and the exponentials of its scores,
    at the rate of matrix products.
    """
    p = problem
    passes = {"forward": 1, "backward": 2, "forward+backward": 3}[p.passes]
    softmax_flops = unmasked_pairs(p) * p.heads * passes * SCORE_FLOPS
    return CALL_S + (work_flops(p) + softmax_flops) / flops_per_s


def case_s(call_s: float, plan: Plan, device: str) -> float:
    """How long a case takes whose call takes `call_s`."""
    sampled_s = sampling_s(
        call_s,
        device,
        processes=plan.processes,
        min_blocks=plan.min_blocks,
        max_blocks=plan.max_blocks,
        budget_s=plan.budget_s,
        start_s=CASE_AGAIN_S,
    )
    return CASE_S + CHECK_CALLS * call_s + sampled_s
