"""How long a run will take, before it begins: from its work, its plan and this machine's pace.

A call takes its FLOPs, and the exponentials of its scores, at the rate of matrix products, and
scores that are written at the rate of memory. How often a case is called, and what comes with it,
follows from the plan. docs/method.md says how far off this was.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple

from ...impls import exactness, missing
from ...impls.masks.counts import unmasked_pairs
from ...impls.problem import Problem
from .. import studies
from ..cases.case import Case, PlannedStudy, Wall
from ..cases.costs import input_bytes, work_flops
from ..cases.expected_time import SLOWER, Expected, Forecast
from ..measure.warm_up import CALLS_TO_TELL, WARM_AGAIN_S, WARM_UP_S, most_warm_up_s
from ..rows.record import Planned
from ..scenario import Plan
from .sampling import BLOCK_MS, FEWEST_UNITS
from .wall_search import FIRST, GROWTH
from .worker_pool import RunConfig

STEPS = 4  # operations of a call, of which each takes a moment
SCORE_FLOPS = 40  # of a product in fp32, which take as long as a score in softmax, in caches
SCORE_MOVES = 6  # written, scaled, put through softmax and read again, through memory
RANK = 256  # keys that an approximate backend sees of N
CASE_S = 0.15  # making inputs, preparing, digests
CHECK_CALLS = 3.0  # one is checked, one is measured in memory; both get fresh memory
EXACT_CALLS = 0.5  # our own exact result of a problem, in float64 on some of its rows
OOM_CALLS = 0.5  # what a call does before its memory ends
REFUSED_S = 0.01
COMPILE_S, COMPILE_AGAIN_S = 20.0, 5.0  # the second from a cache of what was compiled
STUDY_S = 0.5
START_S = 3.0  # of a worker
NEAR_WALL, MOST_TRIALS = 5, 14  # trials near the longest N that fits


class Foreseen(NamedTuple):
    """What is known of a case without running it. `refused`: it will not be called at all."""

    refused: bool = False
    peak_bytes: int | None = None
    compiles: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Rates of this machine as measure/pace.py finds them."""

    flops_per_s: Mapping[str, float]
    bytes_per_s: float
    step_s: float

    def call_s(self, case: Case, foreseen: Foreseen, *, exact: bool = True) -> float | None:
        """How long a call may take; None if its dtype has no rate here.

        `exact`: whether the backend computes attention, whose work is known.
        """
        p, rate = case.problem, self.flops_per_s.get(case.problem.dtype)
        if rate is None:
            return None
        pairs, every = unmasked_pairs(p), p.batch * p.seq_len * p.kv_seq_len
        passes = {"forward": 1, "backward": 2, "forward+backward": 3}[p.passes]
        flops, seen = float(work_flops(p)), pairs
        writes = _writes_scores(p, foreseen)
        if writes:  # a backend that has the whole matrix computes the masked pairs too
            flops += 2.0 * (every - pairs) * p.heads * (p.d_k + p.d_v) * passes
            seen = every
        elif not exact:
            share = min(1.0, RANK / p.kv_seq_len)
            flops, seen = share * flops, round(share * pairs)
        scores = float(seen * p.heads * passes)
        moved_s = SCORE_MOVES * scores * p.item_bytes / self.bytes_per_s if writes else 0.0
        scores_s = scores * SCORE_FLOPS / self.flops_per_s.get("fp32", rate)
        return STEPS * self.step_s + flops / rate + scores_s + moved_s


def _writes_scores(p: Problem, foreseen: Foreseen) -> bool:
    """Whether the peak holds the scores of at least one head."""
    scores = p.batch * p.seq_len * p.kv_seq_len * p.item_bytes
    return foreseen.peak_bytes is not None and foreseen.peak_bytes >= scores


def forecast(
    planned: Iterable[Planned],
    config: RunConfig,
    pace: Pace,
    foreseen: Mapping[str, Foreseen],
    wall_lengths: Mapping[str, int],
) -> Forecast:
    """`foreseen`, `wall_lengths` (the predicted longest N): by id, as far as they are known."""
    expected: dict[str, Expected] = {}
    too_long: list[str] = []
    longest, unknown, apart, cases = 0.0, 0, False, False
    planned = list(planned)
    walls = sum(1 for one in planned if isinstance(one, Wall))
    checked: set[tuple[str | None, Problem]] = set()
    declared: dict[str, Declared] = {}
    for one in planned:
        if isinstance(one, Case):
            cases = True
            if one.backend not in declared:
                declared[one.backend] = declared_of(one.backend)
            refused, is_exact = declared[one.backend]
            seen = foreseen.get(one.id, Foreseen(refused=refused))
            call_s = pace.call_s(one, seen, exact=is_exact)
            if call_s is None:
                unknown += 1
                continue
            first = (one.python, one.problem) not in checked
            checked.add((one.python, one.problem))
            found = _case(one, call_s, seen, config, exact=first)
            if call_s > config.timeout_s and found.call_s is not None:
                too_long.append(one.id)
                longest = max(longest, call_s)
            expected[one.id] = found
        elif isinstance(one, Wall):
            apart = True
            found = _wall(one, wall_lengths.get(one.id), config, pace)
            if config.wall_budget_s is not None:
                found = _within(found, config.wall_budget_s / walls, config)
            expected[one.id] = found
        elif isinstance(one, PlannedStudy):
            apart = True
            about_s = study_s(one.study)
            most_s = min(6 * about_s, max(about_s, config.timeout_s))
            expected[one.id] = Expected(one.backend, "", None, about_s, about_s, most_s)
    starts = (config.plan.processes - 1 if cases else 0) + (1 if apart and cases else 0)
    return Forecast(
        expected=expected,
        start_s=starts * START_S,
        too_long=tuple(too_long),
        longest_call_s=longest,
        timeout_s=config.timeout_s,
        unknown=unknown,
    )


def study_s(name: str) -> float:
    """What a part of a study takes; of one that is gone, what its error takes."""
    try:
        return studies.declared(name).part_s or STUDY_S
    except FileNotFoundError:
        return STUDY_S


class Declared(NamedTuple):
    """What a backend's file says of it. `refused`: a package is missing here."""

    refused: bool
    exact: bool


def declared_of(backend: str) -> Declared:
    """Nothing is imported to find out; a backend that is gone has a row that says so."""
    try:
        return Declared(missing(backend) is not None, exactness(backend) == "exact")
    except ValueError:
        return Declared(refused=True, exact=True)


# ---- one case ------------------------------------------------------------------------------------


def _case(case: Case, call_s: float, seen: Foreseen, config: RunConfig, *, exact: bool) -> Expected:
    """`exact`: the exact result of its problem is charged to this case."""
    dtype, p = case.problem.dtype, case.problem
    needed = input_bytes(p) + (seen.peak_bytes or 0)
    if seen.refused:
        return Expected(case.backend, dtype, None, REFUSED_S, REFUSED_S, 1.0)
    exact_calls = EXACT_CALLS if exact else 0.0
    if needed > config.budget_bytes:
        about = CASE_S + (OOM_CALLS + exact_calls) * call_s
        most = 2 * CASE_S + (1.0 + exact_calls) * SLOWER * call_s
        return Expected(case.backend, dtype, None, CASE_S, about, most)
    about = Timing(config, p, seen.compiles).seconds(call_s, exact_calls)
    most = Timing(config, p, seen.compiles, most=True).seconds(SLOWER * call_s, exact_calls)
    return Expected(case.backend, dtype, call_s, _steady(config, p, about, call_s), about, most)


def _steady(config: RunConfig, p: Problem, about_s: float, call_s: float) -> float:
    """The part of `about_s` that a call half as long leaves: the rest is in calls."""
    half = Timing(config, p).seconds(call_s / 2, 0.0)
    grows = 2 * max(0.0, Timing(config, p).seconds(call_s, 0.0) - half)
    return max(0.0, about_s - grows)


class Timing(NamedTuple):
    """What the plan asks of one case. `most`: as long as its limits allow."""

    config: RunConfig
    problem: Problem
    compiles: bool = False
    most: bool = False

    def seconds(self, call_s: float, exact_calls: float) -> float:
        plan, measure = self.config.plan, self.config.measure
        check_calls = CHECK_CALLS if "memory" in measure else CHECK_CALLS - 1
        total = CASE_S + (check_calls + exact_calls) * call_s
        total += COMPILE_S if self.compiles else 0.0
        if "latency" in measure:
            total += self._latency(plan, call_s, exact_calls)
        if self.config.watches(self.problem):
            total += self._windows(plan, call_s)
        return total

    def _latency(self, plan: Plan, call_s: float, exact_calls: float) -> float:
        block_s = max(BLOCK_MS[self.config.device] / 1e3, call_s)
        fewest = FEWEST_UNITS if plan.processes > 1 else min(FEWEST_UNITS, plan.max_blocks)
        most = plan.processes * plan.max_blocks
        blocks = min(most, max(fewest, ceil(plan.budget_s / block_s)))
        rounds = _rounds(plan, ceil(blocks / plan.processes)) if plan.processes > 1 else 1
        first_s = exact_calls * call_s + self._warm_up(call_s, WARM_UP_S)
        again_s = exact_calls * call_s + self._warm_up(call_s, WARM_AGAIN_S)
        compiled_s = COMPILE_AGAIN_S if self.compiles else 0.0
        processes = plan.processes * (first_s + compiled_s + (rounds - 1) * again_s)
        return processes + blocks * block_s

    def _warm_up(self, call_s: float, least_s: float) -> float:
        """Two calls are checked first, one if it is long; their time counts as warm-up."""
        most_s = most_warm_up_s(self.config.plan.budget_s, least_s)
        usual_s = most_s if self.most else min(CALLS_TO_TELL * call_s, most_s)
        return max(least_s, usual_s, (1 if call_s > WARM_UP_S else 2) * call_s)

    def _windows(self, plan: Plan, call_s: float) -> float:
        modes = 2 if "graphs" in self.config.measure and self.config.device == "cuda" else 1
        warm_s = self._warm_up(call_s, WARM_AGAIN_S) + call_s
        return plan.windows * (modes * (plan.window_s + call_s) + warm_s)


def _rounds(plan: Plan, blocks: int) -> int:
    """How often each process measures until every one has so many blocks (sampling.Sampler)."""
    rounds, target = 1, plan.min_blocks
    while target < min(blocks, plan.max_blocks):
        rounds, target = rounds + 1, ceil(target * 4 / 3)
    return rounds


# ---- one wall ------------------------------------------------------------------------------------


def _wall(wall: Wall, longest: int | None, config: RunConfig, pace: Pace) -> Expected:
    """Trials that grow up to the longest N, then some close to it, each in a fresh worker.

    Without a prediction the time limit ends the search.
    """
    dtype, limit_s = wall.problem.dtype, config.timeout_s
    growing = 4
    if longest:
        seen = Foreseen(peak_bytes=config.budget_bytes)
        trial_s = min(limit_s, pace.call_s(wall.at(longest), seen) or limit_s)
        growing = sum(1 for power in range(40) if FIRST * GROWTH**power < longest)
    else:
        trial_s = limit_s / NEAR_WALL
    about = NEAR_WALL * (START_S + 1.5 * trial_s) + growing * CASE_S
    most = MOST_TRIALS * (SLOWER * START_S + min(limit_s, 3 * trial_s if longest else limit_s))
    return Expected(wall.backend, dtype, None, about, about, max(most, about))


def _within(wall: Expected, share_s: float, config: RunConfig) -> Expected:
    """The last trial may begin just before the end of the wall's share of the time."""
    about_s = min(wall.about_s, share_s)
    most_s = min(wall.most_s, share_s + SLOWER * START_S + config.timeout_s)
    return wall._replace(steady_s=about_s, about_s=about_s, most_s=max(about_s, most_s))


# ---- a worker's request and answer ---------------------------------------------------------------


def forecast_of(left: Sequence[Planned], config: RunConfig, found: Mapping[str, Any]) -> Forecast:
    """How long the rest of a run takes, by what a worker foresees of it."""
    pace, foreseen = pace_of(found["pace"]), foreseen_of(found["cases"])
    return forecast(left, config, pace, foreseen, found["walls"])


def pace_of(rates: Mapping[str, Any]) -> Pace:
    """From what measure/pace.py found."""
    return Pace(**rates)


def foreseen_of(answers: Mapping[str, Mapping[str, Any]]) -> dict[str, Foreseen]:
    """From a worker's answer."""
    return {name: Foreseen(**fields) for name, fields in answers.items()}


def dtypes_of(planned: Sequence[Planned]) -> list[str]:
    """Each dtype once, in order."""
    problems = (one.problem for one in planned if isinstance(one, Case | Wall))
    return list(dict.fromkeys(problem.dtype for problem in problems))
