"""What would decide what a run left open: which plan, by which command, and how long it takes."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import inf, isfinite, log, log1p, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..harness.rows.plans import PLANS, START_AHEAD_S, sampling_s
from ..harness.stats.contrasts import FEWEST_VARIANCES, MOST_PRIOR_DEGREES, Contrast, Spread
from .data.row_groups import Row
from .data.run_meta import Meta, plan_of
from .data.typed import with_plan
from .formatting import number_text
from .judging.ratio import Ratio
from .words import SAME_RATIO

LIKELY = 0.8  # a plan that decides a ratio in this share of runs is said to decide it
IDLE = "Other work disturbed most blocks. Measure again on an idle machine."
DRAWS = 400  # simulated runs: the share is then off by 2 percent points
SMALL = 0.01  # a spread with which nothing overflows; bounds grow in proportion to it
MOST_DEGREES = 30  # of a spread; with more it is known
MOST_PERCENT = 300  # of the differences that are tried
OF_SAMPLING = ("processes", "min_blocks", "max_blocks", "budget_s")


class Seen(NamedTuple):
    """A ratio that is not decided. `process`: how far that of one process may be off."""

    ratio: float
    process: Spread


def likely(seen: Seen, processes: int, *, several: bool) -> bool:
    """Whether so many processes would likely decide a ratio, if it is as was seen: its interval
    would exclude 1, or lie within what counts as the same.

    By the probability that O'Hagan, Stevens and Campbell (2005) call assurance: of runs whose
    processes differ normally, by a spread that is itself drawn from what the run has shown of it
    (its variance, times its degrees of freedom over chi-square). Their intervals are made by the
    code that makes those of real runs. `several`: other pairs of the run tell how ratios vary.
    """
    process, same = seen.process, log1p(SAME_RATIO)
    degrees = min(MOST_DEGREES, max(1, round(process.degrees)))
    lows, highs = _bounds(processes, degrees, several)
    lows, highs = (log(seen.ratio) + process.sd * one for one in (lows, highs))
    decided = (lows > 0) | (highs < 0) | ((lows > -same) & (highs < same))
    return bool(decided.mean() >= LIKELY)


@lru_cache(maxsize=256)
def _bounds(processes: int, degrees: int, several: bool) -> NDArray[np.float64]:
    """[low and high, run]: the intervals of equals on the log scale, in units of the spread."""
    random, found = np.random.default_rng(20261124), []
    for _ in range(DRAWS):
        unknown = degrees < MOST_DEGREES
        sd = SMALL * (sqrt(degrees / random.chisquare(degrees)) if unknown else 1.0)
        learnt = sd * sqrt(random.chisquare(MOST_PRIOR_DEGREES) / MOST_PRIOR_DEGREES)
        interval = Contrast(
            numerator=tuple(random.normal(0, sd, processes)),
            prior=Spread(sd=learnt, degrees=MOST_PRIOR_DEGREES) if several else None,
        ).interval()
        found.append((log(interval.low) / SMALL, log(interval.high) / SMALL))
    return np.array(found).T


def smallest_plan(
    some: Sequence[Seen], processes: int, *, several: bool
) -> tuple[str, Sequence[Seen]] | None:
    """The smallest plan of more processes that would likely decide half of them, else the one that
    would decide most; and which. None if no plan would decide any.
    """
    best: tuple[str, Sequence[Seen]] | None = None
    for name, plan in PLANS.items():
        if plan["processes"] > processes:
            more = int(plan["processes"])
            decided = [one for one in some if likely(one, more, several=several)]
            if len(decided) > (len(best[1]) if best else 0):
                best = (name, decided)
            if 2 * len(decided) >= len(some):
                break
    return best


def what_decides(
    some: Sequence[Seen],
    rows: Sequence[Row],
    run: Mapping[str, Any],
    *,
    disturbed: bool = False,
) -> str:
    """`attnbench run quickstart --plan standard likely decides 6 of these 9 in about 4 min.` Or
    that no plan would, and the least difference that the largest could tell; "" without any.
    `rows`: all that the plan would measure again. `disturbed`: others are open because of other
    work.
    """
    if not some:
        return IDLE if disturbed else ""
    processes = max((row.get("processes") or 1 for row in rows), default=1)
    several = len({row["session"] for row in rows if row.get("session")}) >= FEWEST_VARIANCES
    found = smallest_plan(some, processes, several=several)
    if found is None and processes > 1:
        return _too_small(some, several=several)
    plan, decided = found or (min(PLANS, key=lambda name: PLANS[name]["processes"]), ())
    command = with_plan(run.get("command"), plan)
    command = f"`{command}`" if command else f"A run with `--plan {plan}`"
    if found is None:
        return f"Measured in one process. {command} includes process-to-process variation."
    what = f"{'all' if len(decided) == len(some) else len(decided)} of these {len(some)}"
    what = what if len(some) > 1 else f"this one (×{number_text(some[0].ratio)})"
    seconds = run_s(rows, plan_of(run), PLANS[plan])
    return f"{command} likely decides {what}{_about(seconds)}."


def what_decides_ratios(ratios: Iterable[Ratio], rows: Sequence[Row], meta: Meta) -> str:
    """The same of ratios of a page; "" if its rows are of several runs."""
    left = [one for one in ratios if not one.is_decided]
    quiet = [one for one in left if not one.is_busy]
    some = [Seen(one.value, one.process) for one in quiet if one.process is not None]
    if len(meta) != 1:
        return ""
    (run,) = meta.values()
    return what_decides(some, rows, run, disturbed=len(quiet) < len(left))


def _too_small(some: Sequence[Seen], *, several: bool) -> str:
    plan = max(PLANS, key=lambda name: PLANS[name]["processes"])
    steadiest = min(some, key=lambda one: one.process.sd)
    tried = (steadiest._replace(ratio=1 + percent / 100) for percent in range(5, MOST_PERCENT, 5))
    most = int(PLANS[plan]["processes"])
    least = next((one.ratio for one in tried if likely(one, most, several=several)), inf)
    least_percent = f"only differences of {100 * (least - 1):.0f} % or more"
    tells = f"resolves {least_percent}" if isfinite(least) else "decides nothing"
    return f"Too close to call on this machine: even `--plan {plan}` {tells}."


# ---- how long ------------------------------------------------------------------------------------


def run_s(rows: Sequence[Row], plan: Mapping[str, Any], other: Mapping[str, Any]) -> float | None:
    """How long the cases of a run take with another plan, from how long they took with `plan`: what
    depends on the plan is computed for both. None if the run does not tell.
    """
    spent_s = sum(row.get("spent_s") or 0.0 for row in rows)
    timed = [row for row in rows if row.get("latency_ms") is not None]
    if not spent_s or not all(name in plan for name in OF_SAMPLING):
        return None
    own_s, other_s = (
        START_AHEAD_S * one["processes"]
        + sum(
            sampling_s(
                row["latency_ms"] / 1e3, row["device"], **{name: one[name] for name in OF_SAMPLING}
            )
            for row in timed
        )
        for one in (plan, other)
    )
    return float(max(spent_s - own_s, 0.0) + other_s)


def _about(seconds: float | None) -> str:
    """` in about 40 s`, ` in about 4 min`: one or two digits of a prediction are enough."""
    if seconds is None:
        return ""
    minutes = seconds / 60
    if minutes >= 90:
        return f" in about {number_text(minutes / 60)} h"
    short = max(1, round(seconds, -1) if seconds > 15 else round(seconds))
    return f" in about {minutes:.0f} min" if seconds >= 90 else f" in about {short:.0f} s"
