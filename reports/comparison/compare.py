"""Two runs, or the backends of one run, compared case by case; compare_text.py says it in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path
from typing import Any

from ..data.run_meta import device_identity, device_name
from ..data.noise_floor import Floor, newest_floor
from ..data.read import BadRun, Document, Run, read_run
from ..data.row_groups import problem
from ..formatting import plural, visible
from .case_samples import Side, never, side_of
from .environments import environments
from .gate import Gate, Outcome, apply
from .interleaved_runs import in_turns
from .verdict import Finding, GeometricMean, Terms, geometric_mean, judge

FACTS = (
    "device_name",
    "device_uuid",
    "driver",
    "cuda",
    "cudnn",
    "torch",
    "threads",
    "cpu",
    "cores",
    "allocator",
    "attnbench",
    "git",
)
"""What a run must share with one that takes it up again (harness.first_workers.FINGERPRINT)."""
ALLOCATOR = "plan.allocator"
COMPARED = ("git", "attnbench")
"""Differences that are told and do not count as another environment: they are what is compared."""
Folder = str | Path


class NotComparable(ValueError):
    """One line: the two have nothing to compare, or not what was asked for."""


class DifferentDevices(ValueError):
    """One line: the runs were measured on different devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A run, or what one environment of it measured, as it is called, with what it says of
    itself.
    """

    name: str
    path: Path
    meta: Document
    python: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What a comparison needs of one side."""

    named: Named
    sides: Sequence[Side]
    notes: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A fact of the environment that is not equal; None where it is not known."""

    fact: str
    base: Any
    new: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """What is compared with what, as (base, new). `baseline`: the backend that the others of one
    run are held against, else None.

    `turns`: how many runs each of the two is, measured in turns; None where each is one run.
    `same_run`: the two are parts of one run, its backends or its environments.
    """

    base: Named
    new: Named
    pairs: Sequence[tuple[Side | None, Side | None]]
    baseline: str | None = None
    turns: int | None = None
    same_run: bool = False
    differences: Sequence[Difference] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What came out. `mean` is that of all latency ratios, `means` by backend; `outcome` is the
    gate's, None without one.
    """

    matched: Matched
    findings: Sequence[Finding]
    mean: GeometricMean | None
    means: Mapping[str, GeometricMean]
    terms: Terms
    floor: Floor | None
    outcome: Outcome | None


def compare_runs(
    base: Folder,
    new: Folder,
    gate: Gate | None,
    *,
    pythons: tuple[str | None, str | None] = (None, None),
    allow_different_devices: bool = False,
) -> Comparison:
    """Case by case, by case id; `pythons` are the environments of each that count, all where there
    is no name.

    Raises BadRun, NotComparable and DifferentDevices.
    """
    # One run after the other, so that the samples of only one are in memory.
    before, now = _taken(base, pythons[0]), _taken(new, pythons[1])
    if before.named.name == now.named.name and before.named.path != now.named.path:
        before, now = (
            replace(one, named=replace(one.named, name=str(one.named.path)))
            for one in (before, now)
        )
    return _judged(_matched(before, now, allow_different_devices=allow_different_devices), gate)


def compare_turns(
    base: Sequence[Folder],
    new: Sequence[Folder],
    gate: Gate | None,
    *,
    allow_different_devices: bool = False,
) -> Comparison:
    """Runs of one code and runs of another, measured in turns: the first of one with the first of
    the other, and so on.

    Raises BadRun, NotComparable and DifferentDevices.
    """
    if len(base) != len(new):
        raise NotComparable(
            f"base has {plural(len(base), 'run')} and new {len(new)}; wanted as many: a turn is one"
            " run of each"
        )
    sides = []
    for side in (base, new):
        runs = [_taken(path) for path in side]
        for other in runs[1:]:
            _refuse_other_device(runs[0].named, other.named, allow=False)
        first, last = runs[0].named, runs[-1].named
        named = (
            first
            if len(runs) == 1
            else replace(first, name=f"{len(runs)} runs, {first.name} to {last.name}")
        )
        notes = [f"{_said(run.named)}: {note}" for run in runs for note in run.notes]
        sides.append(Taken(named=named, sides=in_turns([run.sides for run in runs]), notes=notes))
    matched = _matched(*sides, allow_different_devices=allow_different_devices)
    return _judged(replace(matched, turns=len(base)), gate)


def _matched(before: Taken, now: Taken, *, allow_different_devices: bool) -> Matched:
    """By case id."""
    _refuse_other_device(before.named, now.named, allow=allow_different_devices)
    same_run = (
        None not in (before.named.python, now.named.python) and before.named.path == now.named.path
    )
    old = {_case(side, before.named): side for side in before.sides}
    fresh = {_case(side, now.named): side for side in now.sides}
    if not old.keys() & fresh.keys():
        raise NotComparable(
            f"{_said(now.named)} and {_said(before.named)} have no case in common; compare runs of"
            " the same scenario"
        )
    pairs = [(old.get(case), side) for case, side in fresh.items()] + [
        (side, None) for case, side in old.items() if case not in fresh
    ]
    return Matched(
        base=before.named,
        new=now.named,
        pairs=pairs,
        same_run=same_run,
        differences=_differences(before.named.meta, now.named.meta, every=same_run),
        notes=[f"{_said(one.named)}: {note}" for one in (before, now) for note in one.notes],
    )


def compare_backends(path: Folder, baseline: str, gate: Gate | None) -> Comparison:
    """Every other backend of a run with `baseline`, problem by problem. Raises BadRun and
    NotComparable.
    """
    taken = _taken(path)
    run, sides = taken.named, taken.sides
    known = list(dict.fromkeys(side.backend for side in sides))
    if baseline not in known:
        raise NotComparable(
            f"--baseline: no backend {visible(repr(baseline))} in {_said(run)}; there are:"
            f" {visible(', '.join(known))}"
        )
    against = {_problem_of(side): side for side in reversed(sides) if side.backend == baseline}
    pairs = [(against.get(_problem_of(side)), side) for side in sides if side.backend != baseline]
    if not any(base is not None for base, _ in pairs):
        raise NotComparable(
            f"{_said(run)} has no other backend on a problem of {visible(baseline)}"
        )
    return _judged(
        Matched(
            base=run, new=run, baseline=baseline, pairs=pairs, same_run=True, notes=taken.notes
        ),
        gate,
    )


def _judged(matched: Matched, gate: Gate | None) -> Comparison:
    floor = newest_floor(
        (matched.base.path.parent, matched.new.path.parent), device_identity(matched.new.meta)
    )
    run_noise_ratio = floor.run_noise_ratio if floor else 0.0
    terms = Terms(
        given=gate.given if gate else {},
        # A turn's two values come from two processes; the mean of several turns is noisy by so much
        # less.
        paired_floor_ratio=(
            run_noise_ratio / sqrt(matched.turns)
            if matched.turns
            else floor.paired_noise_ratio
            if floor
            else 0.0
        ),
        unpaired_floor_ratio=run_noise_ratio,
        same_run=matched.same_run,
        backends=matched.baseline is not None,
        own_processes=matched.same_run and matched.baseline is None,
        in_turns=matched.turns is not None,
        environment_differs=not matched.same_run
        and any(one.fact not in COMPARED for one in matched.differences),
    )
    findings = judge(matched.pairs, terms)
    by_backend: dict[str, list[Finding]] = {}
    for found in findings:
        by_backend.setdefault(found.shown.backend, []).append(found)
    means = {
        backend: mean
        for backend, some in by_backend.items()
        if (mean := geometric_mean(some)) is not None
    }
    try:
        outcome = apply(gate, findings) if gate else None
    except ValueError as error:
        raise NotComparable(f"--gate: {error}") from None
    return Comparison(
        matched=matched,
        findings=findings,
        mean=geometric_mean(findings),
        means=means,
        terms=terms,
        floor=floor,
        outcome=outcome,
    )


def _taken(path: Folder, python: str | None = None) -> Taken:
    """Of a run, or of one of its environments; the samples are not kept."""
    run = read_run(path)
    if not run.rows:
        raise NotComparable(
            f"{visible(str(path))}: no case has a row; nothing was measured there; resume it, or"
            " compare another run"
        )
    meta, name, sides = {**run.meta, "cases": []}, str(run.meta["run"]), _sides(run)
    if python is not None:
        meta["environment"] = _environment(run, python)
        name, sides = (
            f"{name}@{python}",
            [side for side in sides if side.problem["python"] == python],
        )
    return Taken(
        named=Named(name=name, path=run.path, meta=meta, python=python),
        sides=sides,
        notes=run.notes,
    )


def _environment(run: Run, python: str) -> Document:
    known = environments(run.meta)
    if python not in known:
        there_are = (
            f"there are: {visible(', '.join(known))}"
            if known
            else "it was measured in one, without --python"
        )
        raise NotComparable(
            f"{visible(str(run.path))}: no environment {visible(repr(python))} in this run;"
            f" {there_are}"
        )
    return known[python]


def _case(side: Side, of: Named) -> str:
    """The id by which a case is matched: without its environment, where that is what was
    asked for.
    """
    return side.case if of.python is None else side.case.removesuffix(f"-{of.python}")


def _sides(run: Run) -> list[Side]:
    sides = []
    for row in run.rows:
        try:
            sides.append(side_of(row))
        except (ValueError, OverflowError) as error:
            raise BadRun(
                f"{visible(str(run.path / 'rows.jsonl'))}: {visible(row['case'])}: {error}"
            ) from None
    return sides + [never(planned, run.meta["device"]) for planned in run.missing]


def _problem_of(side: Side) -> tuple[Any, ...]:
    return tuple(problem(side.problem).values())


def _refuse_other_device(base: Named, new: Named, *, allow: bool) -> None:
    before, now = device_identity(base.meta), device_identity(new.meta)
    for fact in sorted(before.keys() & now.keys()):
        if before[fact] != now[fact] and not allow:
            other, this = (device_name(one.meta) for one in (base, new))
            by = f"; {fact} differs" if other == this else ""
            raise DifferentDevices(
                f"different devices: {visible(other)[:80]} and {visible(this)[:80]}{by}; "
                "compare runs of one device, or add --allow-different-devices"
            )


def _differences(base: Document, new: Document, *, every: bool) -> list[Difference]:
    """Of the facts that a number depends on, or of all that are known: two environments of one
    machine may differ in any.
    """
    facts = dict.fromkeys((*FACTS, *base["environment"], *new["environment"])) if every else FACTS
    values = [
        {fact: one["environment"].get(fact) for fact in facts} | {ALLOCATOR: _allocator(one)}
        for one in (base, new)
    ]
    pairs = {"device": (base["device"], new["device"])} | {
        fact: (values[0][fact], values[1][fact]) for fact in values[0]
    }
    return [
        Difference(fact=fact, base=before, new=now)
        for fact, (before, now) in pairs.items()
        if before != now
    ]


def _allocator(meta: Document) -> Any:
    """How the C heap was set while a CPU was timed; on a GPU it does not matter."""
    plan = meta["scenario"].get("plan")
    return plan.get("allocator") if isinstance(plan, dict) and meta["device"] == "cpu" else None


def _said(run: Named) -> str:
    return visible(run.name)[:120]
