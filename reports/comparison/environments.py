"""Did the other environment change the speed? The environments of a run, case by case against the
first, with a comparison's verdicts.

They took turns in the same blocks, so their ratios are paired.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..data.run_meta import Meta, device_identity
from ..data.noise_floor import Floor, newest_floor
from ..data.read import BadRun
from ..data.row_groups import Row, label, problem, varying_axes
from ..formatting import plural, times_text
from .case_samples import Side, side_of
from .verdict import CODES, UNDECIDED, Finding, GeometricMean, Terms, geometric_mean, judge
from .verdict_text import HINTS, TITLES, counted, mean_text, severity, value_text

AXIS = "python"
MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """What came of every case in `new`, held against `base`, the first environment of the run.
    `floor` has raised the margins, if any.
    """

    run: str
    base: str
    new: str
    findings: Sequence[Finding]
    floor: Floor | None

    @property
    def mean(self) -> GeometricMean | None:
        return geometric_mean(self.findings)


def environments(run: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """By name what each tells of itself, the first one first; empty where a run has one."""
    return {one["name"]: one["environment"] for one in run.get("environments") or []}


def apart(rows: Sequence[Row]) -> dict[str | None, list[Row]]:
    """The rows of each environment; all under None where there is one."""
    found: dict[str | None, list[Row]] = {}
    for row in rows:
        found.setdefault(row.get(AXIS), []).append(row)
    return found or {None: []}


def differing(run: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The facts that are not equal in all environments, with what each has."""
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


def compared(rows: Sequence[Row], meta: Meta) -> list[Between]:
    """Every environment but the first of each run that has some."""
    found = []
    for name, run in meta.items():
        named = list(environments(run))
        by_environment = {
            python: _by_case(
                [row for row in rows if row["run"] == name and row.get(AXIS) == python]
            )
            for python in named
        }
        floor = _floor(run)
        for new in named[1:]:
            sides = [by_environment[one] for one in (named[0], new)]
            cases = dict.fromkeys([*sides[1], *sides[0]])
            findings = judge(
                [(sides[0].get(case), sides[1].get(case)) for case in cases], terms(floor)
            )
            found.append(Between(run=name, base=named[0], new=new, findings=findings, floor=floor))
    return found


def terms(floor: Floor | None) -> Terms:
    return Terms(
        paired_floor_ratio=floor.paired_noise_ratio if floor else 0.0,
        unpaired_floor_ratio=floor.run_noise_ratio if floor else 0.0,
        same_run=True,
        own_processes=True,
    )


def _floor(run: Mapping[str, Any]) -> Floor | None:
    """The noise of this device, where a self-check beside the run has measured it."""
    try:
        return (
            newest_floor([Path(run["path"]).parent], device_identity(run))
            if "path" in run
            else None
        )
    except BadRun:  # a file beside the run, which is no reason to show nothing of it
        return None


def _by_case(rows: Sequence[Row]) -> dict[tuple[Any, ...], Side]:
    return {
        (row["backend"], *(value for axis, value in problem(row).items() if axis != AXIS)): _side(
            row
        )
        for row in rows
    }


def _side(row: Row) -> Side:
    try:
        return side_of(row)
    except (
        ValueError,
        OverflowError,
    ):  # samples that no clock could have read: the row has no time to compare
        return replace(side_of({**row, "block_ms": None, "windows": None}), session=None)


# ---- in words ------------------------------------------------------------------------------------


def finding(found: Between) -> str:
    """One sentence on time: how often slower, faster, the same; and the geometric mean."""
    timed = [one for one in found.findings if one.metric == "latency"]
    if not timed:
        return f"{found.new} against {found.base}: no case has a latency in both"
    mean = f"; geometric mean {mean_text(found.mean)}" if found.mean else ""
    return (
        f"{found.new} against {found.base}: {counted(timed)} of {plural(len(timed), 'case')}{mean}"
    )


def exceptions(found: Between) -> list[str]:
    """What got worse or better in time, the worst first; bytes and energy where any changed; what
    broke or was mended; why some are open.

    A sentence each.
    """
    said = []
    some = sorted(
        (one for one in found.findings if one.metric == "latency" and (one.worse or one.better)),
        key=severity,
    )
    for one in some[:MOST_NAMED]:
        times = times_text(one.ratio, one.low, one.high)
        said.append(
            f"{one.verdict} in {found.new}: {place(one, found)} takes {times} as long as in"
            f" {found.base}"
        )
    if len(some) > MOST_NAMED:
        said.append(f"{len(some) - MOST_NAMED} more cases are slower or faster in {found.new}")
    for metric in ("peak_bytes", "energy_per_call"):
        alike = [one for one in found.findings if one.metric == metric]
        if any(one.worse or one.better for one in alike):
            said.append(
                f"{TITLES[metric]} in {found.new} against {found.base}: {counted(alike)} of"
                f" {plural(len(alike), 'case')}"
            )
    changed = [
        one for one in found.findings if one.metric == "status" and (one.worse or one.better)
    ]
    for one in changed[:MOST_NAMED]:
        side = one.new if one.worse else one.base
        why = f" ({side.reason})" if side is not None and side.reason else ""
        outcome = f"{value_text(one, is_new=True)}, in {found.base} {value_text(one, is_new=False)}"
        said.append(f"{one.verdict} in {found.new}: {place(one, found)}: {outcome}{why}")
    if len(changed) > MOST_NAMED:
        said.append(f"{len(changed) - MOST_NAMED} more cases are broken or mended in {found.new}")
    open_ones = Counter(
        code
        for one in found.findings
        if one.metric == "latency" and one.verdict == UNDECIDED
        for code in one.reasons
    )
    said += [
        f"undecided in {count}: {CODES[code]}{hint(code)}"
        for code, count in open_ones.most_common(1)
    ]
    return said


def hint(code: str) -> str:
    """What would help against it."""
    return f"; {HINTS[code]}" if code in HINTS else ""


def place(one: Finding, of: Between) -> str:
    """`sdpa at N = 4k`: the backend, and what tells the problems apart."""
    axes = varying_axes([without(found.shown.problem) for found in of.findings]) or ["seq_len"]
    return f"{one.shown.backend} at {label(without(one.shown.problem), axes)}"


def without(of: Row) -> Row:
    """A problem but for its environment."""
    return {axis: value for axis, value in problem(of).items() if axis != AXIS}
