"""Did the other environment change the speed? The environments of a run against the first one.

They were measured alternately in the same blocks, so their ratios are paired.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from ...harness.stats.intervals import Interval
from ..data.noise_floor import (
    NoiseFloor,
    newest_noise_floor,
    process_noise_of,
    spread_of_rows,
)
from ..data.read import BadRun, results_folders
from ..data.row_groups import Row, label, problem, varying_axes
from ..data.run_meta import Meta, device_identity
from ..formatting import plural, times_text
from .case_samples import CaseSamples, case_samples
from .verdict import (
    UNDECIDED,
    CaseVerdict,
    Rules,
    case_verdicts,
    geometric_mean,
)
from .verdict_text import (
    TITLES,
    counts_text,
    doubt_lines,
    ended_lines,
    mean_text,
    severity,
)

AXIS = "python"
MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentComparison:
    """Every case in the environment `new` against `base`, the first environment of the run."""

    run: str
    base: str
    new: str
    verdicts: Sequence[CaseVerdict]
    noise_floor: NoiseFloor | None
    rules: Rules

    @property
    def mean(self) -> Interval | None:
        return geometric_mean(self.verdicts)

    @property
    def of_latency(self) -> list[CaseVerdict]:
        return [one for one in self.verdicts if one.metric == "latency"]


def environments(run: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The facts of each environment by name, in order; empty if a run has only one."""
    return {one["name"]: one["environment"] for one in run.get("environments") or []}


def differing(run: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The facts that differ between environments, with the value of each."""
    known = list(environments(run).values())
    by_fact = {
        fact: [one.get(fact) for one in known]
        for fact in dict.fromkeys(fact for one in known for fact in one)
    }
    return {
        fact: values
        for fact, values in by_fact.items()
        if any(value != values[0] for value in values)
    }


def compare_environments(rows: Sequence[Row], meta: Meta) -> list[EnvironmentComparison]:
    """Every environment but the first, of each run that has several."""
    found = []
    for name, run in meta.items():
        base, *others = list(environments(run)) or [""]
        mine = [row for row in rows if row["run"] == name]
        before = _by_case(mine, base)
        floor = _noise_floor(run) if others else None
        learnt = spread_of_rows(mine) if others and floor is None else None
        process = process_noise_of(floor, learnt)
        rules = Rules.on(floor, process, same_run=True)
        for new in others:
            now = _by_case(mine, new)
            pairs = [(before.get(case), now.get(case)) for case in dict.fromkeys([*now, *before])]
            found.append(
                EnvironmentComparison(
                    run=name,
                    base=base,
                    new=new,
                    verdicts=case_verdicts(pairs, rules),
                    noise_floor=floor,
                    rules=rules,
                )
            )
    return found


def _noise_floor(run: Mapping[str, Any]) -> NoiseFloor | None:
    """The noise of this device, if a self-check in the same folder has measured it."""
    if "path" not in run:
        return None
    try:
        return newest_noise_floor(results_folders(Path(run["path"])), device_identity(run))
    except BadRun:  # a file beside the run must not break its report
        return None


def _by_case(rows: Sequence[Row], python: str) -> dict[tuple[Any, ...], CaseSamples]:
    return {
        (row["backend"], *without_environment(row).values()): _case(row)
        for row in rows
        if row.get(AXIS) == python
    }


def _case(row: Row) -> CaseSamples:
    try:
        return case_samples(row)
    except (ValueError, OverflowError):  # implausible samples: the row has no time to compare
        return replace(case_samples({**row, "block_ms": None, "windows": None}), session=None)


# ---- as text -------------------------------------------------------------------------------------


def finding(found: EnvironmentComparison) -> str:
    """One sentence on latency: how many cases are slower, faster, the same; the geometric mean."""
    if not found.of_latency:
        return f"{found.new} against {found.base}: no case has a latency in both."
    mean = f"; geometric mean {mean_text(found.mean)}" if found.mean else ""
    return f"{found.new} against {found.base}: {counts_text(found.of_latency)}{mean}."


def exceptions(found: EnvironmentComparison) -> Iterator[str]:
    """A sentence on each latency that changed, worst first, and on everything else that changed."""
    changed = sorted((one for one in found.of_latency if one.worse or one.better), key=severity)
    for one in changed[:MOST_NAMED]:
        times = times_text(one.ratio, one.low, one.high)
        said = f"{one.verdict} in {found.new}: {place(one, found)} takes {times} as long as in"
        yield f"{said[0].upper() + said[1:]} {found.base}."
    if len(changed) > MOST_NAMED:
        more = plural(len(changed) - MOST_NAMED, "more case is", "more cases are")
        yield f"{more} slower or faster in {found.new}."
    for metric in ("peak_bytes", "energy_per_call"):
        some = [one for one in found.verdicts if one.metric == metric]
        if any(one.worse or one.better for one in some):
            yield (
                f"{TITLES[metric].capitalize()} in {found.new} against {found.base}:"
                f" {counts_text(some)}."
            )
    yield from ended_lines(found.verdicts, lambda one: place(one, found))
    undecided = [one for one in found.of_latency if one.verdict == UNDECIDED]
    yield from islice(doubt_lines(undecided, found.rules), 1)


def place(one: CaseVerdict, of: EnvironmentComparison) -> str:
    """`sdpa at N = 4k`: the backend and the axes that vary."""
    problems = [without_environment(other.shown.problem) for other in of.verdicts]
    axes = varying_axes(problems) or ["seq_len"]
    return f"{one.shown.backend} at {label(without_environment(one.shown.problem), axes)}"


def without_environment(row: Row) -> Row:
    """The problem of a row except its environment."""
    return {axis: value for axis, value in problem(row).items() if axis != AXIS}
