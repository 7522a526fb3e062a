"""How long a run will take, before it begins: its cases, walls and studies, by a machine's pace."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...impls import exactness, missing
from .. import studies
from ..cases.case import Case, PlannedStudy, Wall
from ..cases.costs import input_bytes
from ..cases.expected_time import Expected, Forecast
from ..machine.load import Load
from ..rows.plans import START_AHEAD_S
from ..rows.record import Planned
from ..scenario.estimate import CASE_S, Foreseen, Pace, case_s
from .wall_search import FIRST, GROWTH
from .worker_pool import RunConfig

REFUSED = Expected(about_s=0.01)
STUDY_S = 0.5
START_S = 3.0  # of a worker
TOLD_APART = ("4", "1.5")  # beside other work, by one process, by several (docs/method.md)
NEAR_WALL = 5  # trials near the longest N that fits


def forecast(
    planned: Iterable[Planned],
    config: RunConfig,
    pace: Pace,
    foreseen: Mapping[str, Foreseen],
    wall_lengths: Mapping[str, int],
) -> Forecast:
    """`foreseen`, `wall_lengths` (the predicted longest N): by id, as far as they are known."""
    planned = list(planned)
    walls = [one for one in planned if isinstance(one, Wall)]
    expected: dict[str, Expected] = {}
    too_long: dict[str, float] = {}
    unknown = 0
    for one in planned:
        if isinstance(one, Wall):
            expected[one.id] = _wall(one, wall_lengths.get(one.id), config, pace, len(walls))
        elif isinstance(one, PlannedStudy):
            expected[one.id] = Expected(study_s(one.study))
        elif isinstance(one, Case):
            exact = _exact(one.backend)
            seen = foreseen.get(one.id, Foreseen(refused=exact is None))
            try:
                call_s = pace.call_s(one.problem, seen.peak_bytes, exact=exact is True)
            except KeyError:  # a dtype that this device cannot multiply
                unknown += 1
                continue
            needed_bytes = input_bytes(one.problem) + (seen.peak_bytes or 0)
            if seen.refused:
                expected[one.id] = REFUSED
            elif needed_bytes > config.budget_bytes:  # memory ends in its first call
                expected[one.id] = Expected(CASE_S + call_s / 2)
            else:
                expected[one.id] = _case(one, call_s, config, compiles=seen.compiles)
                if call_s > config.timeout_s:
                    too_long[one.id] = call_s
    cases = any(isinstance(one, Case) for one in planned)
    apart = any(not isinstance(one, Case) for one in planned)
    ahead_s = START_AHEAD_S * (config.plan.processes - 1) if cases else 0.0
    return Forecast(
        expected=expected,
        start_s=ahead_s + (START_S if apart and cases else 0.0),
        too_long=tuple(too_long),
        longest_call_s=max(too_long.values(), default=0.0),
        timeout_s=config.timeout_s,
        unknown=unknown,
        walls_s=config.wall_budget_s if walls else None,
    )


def busy_text(load: Load | None, *, processes: int = 0, means: str = "") -> str:
    """What other work means for a run, before its first block; "" if there is none. `processes`: of
    the plan, if calls are timed. `means`: for what is no run.
    """
    if load is None:
        return ""
    times = f"times are told apart only from a factor of about {TOLD_APART[processes > 1]} on"
    usual = f"{times}, memory is exact" if processes else "it takes longer, memory is exact"
    means, wait = means or usual, "--wait-idle 10m waits until it is idle"
    if processes and load.cores > 1 and os.environ.get("OMP_NUM_THREADS") != "1":
        wait += ", or --threads 1 measures what one thread takes, which waits for no other"
    return f"This machine is busy: {load.text}. If that lasts, {means}; Ctrl-C, then {wait}."


def study_s(name: str) -> float:
    """What a part of a study takes; of one that is gone, what its error takes."""
    try:
        return studies.declared(name).part_s or STUDY_S
    except FileNotFoundError:
        return STUDY_S


def _exact(backend: str) -> bool | None:
    """Whether it computes attention, by its file; None if it is gone or lacks a package."""
    try:
        return None if missing(backend) else exactness(backend) == "exact"
    except ValueError:
        return None


def _case(case: Case, call_s: float, config: RunConfig, *, compiles: bool) -> Expected:
    modes = 0
    if config.watches(case.problem):
        modes = 2 if "graphs" in config.measure and config.device == "cuda" else 1
    plan, measure = config.plan, config.measure
    about_s = case_s(call_s, plan, config.device, measure, modes=modes, compiles=compiles)
    return Expected(about_s, 1 + ("latency" in measure) * plan.processes * plan.max_blocks)


def _wall(wall: Wall, longest: int | None, config: RunConfig, pace: Pace, walls: int) -> Expected:
    """Trials that grow up to the longest N, then some close to it, each in a fresh worker; within
    the wall's share of the time, if that is limited.

    Without a prediction the time limit ends the search.
    """
    limit_s, growing, trial_s = config.timeout_s, 4, config.timeout_s / NEAR_WALL
    if longest and wall.problem.dtype in pace.flops_per_s:
        problem = wall.at(longest).problem
        trial_s = min(limit_s, pace.call_s(problem, config.budget_bytes))
        growing = sum(1 for power in range(40) if FIRST * GROWTH**power < longest)
    about_s = NEAR_WALL * (START_S + 1.5 * trial_s) + growing * CASE_S
    if config.wall_budget_s is not None:
        about_s = min(about_s, config.wall_budget_s / walls)
    return Expected(about_s, NEAR_WALL + growing)


# ---- a worker's request and answer ---------------------------------------------------------------


def forecast_of(
    left: Sequence[Planned],
    config: RunConfig,
    found: Mapping[str, Any] | None,
    load: Load | None = None,
) -> Forecast | None:
    """How long the rest of a run takes, by what a worker foresees of it; None if it does not.

    `load`: what other programs use meanwhile, if that disturbs.
    """
    if found is None:
        return None
    foreseen = {name: Foreseen(**fields) for name, fields in found["cases"].items()}
    expected = forecast(left, config, Pace(**found["pace"]), foreseen, found["walls"])
    timed = "latency" in config.measure and any(isinstance(one, Case) for one in left)
    busy = busy_text(load, processes=config.plan.processes if timed else 0)
    return replace(expected, busy=busy if config.device == "cpu" else "")


def dtypes_of(planned: Sequence[Planned]) -> list[str]:
    """Each dtype once, in order."""
    problems = (one.problem for one in planned if isinstance(one, Case | Wall))
    return list(dict.fromkeys(problem.dtype for problem in problems))
