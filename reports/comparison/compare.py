"""Two runs, or the backends of one run, compared case by case."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from math import sqrt
from pathlib import Path
from typing import Any

from ...harness.files.errors import BadInput, EnvironmentUnmet, NothingSelected
from ...harness.files.printable import visible
from ..data.noise_floor import (
    ASSUMED,
    NoiseFloor,
    ProcessNoise,
    newest_noise_floor,
    spread_of_medians,
)
from ..data.read import BadRun, Document, Run, read_run, results_folders
from ..data.row_groups import problem
from ..data.run_meta import allocator, device_identity, device_name
from ..formatting import plural
from ..ratio import Noise
from .case_samples import CaseSamples, case_samples, not_started
from .environments import environments
from .gate import Gate, GateResult, apply
from .interleaved_runs import merge_runs
from .verdict import CaseVerdict, GeometricMean, Rules, case_verdicts, geometric_mean

FACTS = (
    *("device_name", "device_uuid", "driver", "cuda", "cudnn", "torch", "threads", "cpu", "cores"),
    *("allocator", "attnbench", "git"),
)
"""The facts that a resumed run must share with the run it continues (FINGERPRINT in harness/)."""
ALLOCATOR = "plan.allocator"
COMPARED = ("git", "attnbench")
"""Facts that may differ: a comparison of two versions shows them, and does not warn."""
Folder = str | Path


class NotComparable(BadInput):
    """One line: there is nothing to compare, or not what was requested."""


class DifferentDevices(EnvironmentUnmet, ValueError):
    """One line: the runs were measured on different devices."""


class NoCaseLeft(NothingSelected, ValueError):
    """One line: no case matches what was selected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A run, or one environment of it (`python`), with its run.json."""

    name: str
    path: Path
    meta: Document
    python: str | None = None

    @property
    def shown(self) -> str:
        """The name, safe to print."""
        return visible(self.name)[:120]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a comparison."""

    source: Source
    cases: Sequence[CaseSamples]
    notes: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A fact of the environment that differs; None if it is unknown."""

    fact: str
    base: Any
    new: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """The pairs to compare, as (base, new).

    `baseline`: the backend that the others of one run are compared with. `turns`: the number of
    runs on each side if they were measured alternately. `same_run`: both sides are parts of one
    run, its backends or its environments. `left_out`: how many pairs `only` did not take.
    """

    base: Source
    new: Source
    pairs: Sequence[tuple[CaseSamples | None, CaseSamples | None]]
    baseline: str | None = None
    turns: int | None = None
    same_run: bool = False
    differences: Sequence[Difference] = ()
    notes: Sequence[str] = ()
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """`mean` is the geometric mean of all latency ratios, `means` those by backend."""

    matched: Matched
    verdicts: Sequence[CaseVerdict]
    mean: GeometricMean | None
    means: Mapping[str, GeometricMean]
    rules: Rules
    noise_floor: NoiseFloor | None
    gate_result: GateResult | None


def compare_runs(
    base: Folder,
    new: Folder,
    gate: Gate | None,
    *,
    pythons: tuple[str | None, str | None] = (None, None),
    only: Sequence[str] = (),
    allow_different_devices: bool = False,
    salvage: bool = False,
) -> Comparison:
    """Case by case, by case id; `pythons` name an environment of each run, None takes all.

    `only`: backends, shell patterns or parts of case ids. `salvage`: without rows that cannot be
    read. Raises BadRun, NotComparable, DifferentDevices and NoCaseLeft.
    """
    # Read one run after the other: the samples of only one are in memory.
    before, now = (
        _side(path, python, salvage=salvage)
        for path, python in zip((base, new), pythons, strict=True)
    )
    if before.source.name == now.source.name and before.source.path != now.source.path:
        before, now = (
            replace(one, source=replace(one.source, name=str(one.source.path)))
            for one in (before, now)
        )
    matched = _matched(before, now, allow_different_devices=allow_different_devices)
    return _compared(matched, gate, only)


def compare_interleaved(
    base: Sequence[Folder],
    new: Sequence[Folder],
    gate: Gate | None,
    *,
    only: Sequence[str] = (),
    allow_different_devices: bool = False,
    salvage: bool = False,
) -> Comparison:
    """Runs of two versions that were measured alternately, paired turn by turn.

    Raises BadRun, NotComparable, DifferentDevices and NoCaseLeft.
    """
    if len(base) != len(new):
        raise NotComparable(
            f"base has {plural(len(base), 'run')} and new {len(new)}; wanted as many: a turn is one"
            " run of each"
        )
    sides = []
    for paths in (base, new):
        runs = [_side(path, salvage=salvage) for path in paths]
        for other in runs[1:]:
            _refuse_other_device(runs[0].source, other.source, allow=False)
        source = runs[0].source
        if len(runs) > 1:
            name = f"{len(runs)} runs, {source.name} to {runs[-1].source.name}"
            source = replace(source, name=name)
        notes = [note for run in runs for note in _notes(run)]
        sides.append(
            Side(source=source, cases=merge_runs([run.cases for run in runs]), notes=notes)
        )
    matched = _matched(*sides, allow_different_devices=allow_different_devices)
    return _compared(replace(matched, turns=len(base)), gate, only)


def _matched(before: Side, now: Side, *, allow_different_devices: bool) -> Matched:
    """Pairs by case id."""
    base, new = before.source, now.source
    _refuse_other_device(base, new, allow=allow_different_devices)
    same_run = None not in (base.python, new.python) and base.path == new.path
    old = {_case_id(case, base): case for case in before.cases}
    fresh = {_case_id(case, new): case for case in now.cases}
    if not old.keys() & fresh.keys():
        raise NotComparable(
            f"{new.shown} and {base.shown} have no case in common; compare runs of the same"
            " scenario"
        )
    return Matched(
        base=base,
        new=new,
        pairs=[(old.get(name), case) for name, case in fresh.items()]
        + [(case, None) for name, case in old.items() if name not in fresh],
        same_run=same_run,
        differences=_differences(base.meta, new.meta, every=same_run),
        notes=[*_notes(before), *_notes(now)],
    )


def _notes(side: Side) -> list[str]:
    return [f"{side.source.shown}: {note}" for note in side.notes]


def compare_backends(
    path: Folder,
    baseline: str,
    gate: Gate | None,
    *,
    only: Sequence[str] = (),
    salvage: bool = False,
) -> Comparison:
    """Every other backend of a run with `baseline`, by problem.

    Raises BadRun, NotComparable and NoCaseLeft.
    """
    side = _side(path, salvage=salvage)
    run = side.source
    known = list(dict.fromkeys(case.backend for case in side.cases))
    if baseline not in known:
        raise NotComparable(
            f"--baseline: no backend {visible(repr(baseline))} in {run.shown}; there are:"
            f" {visible(', '.join(known))}"
        )
    bases = {_problem_of(case): case for case in reversed(side.cases) if case.backend == baseline}
    pairs = [
        (bases.get(_problem_of(case)), case) for case in side.cases if case.backend != baseline
    ]
    if not any(base is not None for base, _ in pairs):
        raise NotComparable(f"{run.shown} has no other backend on a problem of {visible(baseline)}")
    matched = Matched(
        base=run, new=run, baseline=baseline, pairs=pairs, same_run=True, notes=side.notes
    )
    return _compared(matched, gate, only)


def _selected(matched: Matched, only: Sequence[str]) -> Matched:
    """The pairs that the patterns take, as `attnbench run --only` does."""
    if not only:
        return matched
    pairs = [
        (base, new)
        for base, new in matched.pairs
        if any(_matches(side, pattern) for side in (new or base,) if side for pattern in only)
    ]
    if not pairs:
        example = next((side.case for pair in matched.pairs for side in pair if side), "none")
        raise NoCaseLeft(
            f"--only: no compared case matches {visible(', '.join(only))[:120]}; wanted backends,"
            f" or parts of case ids such as {visible(example)[:120]}"
        )
    return replace(matched, pairs=pairs, left_out=len(matched.pairs) - len(pairs))


def _matches(case: CaseSamples, pattern: str) -> bool:
    return pattern in (case.case, case.backend) or fnmatchcase(case.case, f"*{pattern}*")


def _compared(whole: Matched, gate: Gate | None, only: Sequence[str]) -> Comparison:
    matched = _selected(whole, only)
    folders = (*results_folders(matched.base.path), *results_folders(matched.new.path))
    floor = newest_noise_floor(folders, device_identity(matched.new.meta))
    run_noise_ratio = floor.run_noise_ratio if floor else 0.0
    paired_noise_ratio = floor.paired_noise_ratio if floor else 0.0
    if matched.turns:
        # The two values of a turn come from two processes; the mean over turns is less noisy.
        paired_noise_ratio = run_noise_ratio / sqrt(matched.turns)
    rules = Rules(
        given=gate.given if gate else {},
        paired_floor_ratio=paired_noise_ratio,
        unpaired_floor_ratio=run_noise_ratio,
        same_run=matched.same_run,
        backends=matched.baseline is not None,
        own_processes=matched.same_run and matched.baseline is None,
        interleaved=matched.turns is not None,
        environment_differs=not matched.same_run
        and any(one.fact not in COMPARED for one in matched.differences),
        noise=Noise(
            process=_process_noise(floor, whole),
            between_runs=floor.between_runs if floor else None,
        ),
    )
    verdicts = case_verdicts(matched.pairs, rules)
    by_backend: dict[str, list[CaseVerdict]] = {}
    for one in verdicts:
        by_backend.setdefault(one.shown.backend, []).append(one)
    means = {backend: geometric_mean(some) for backend, some in by_backend.items()}
    try:
        gate_result = apply(gate, verdicts) if gate else None
    except ValueError as error:
        raise NotComparable(f"--gate: {error}") from None
    return Comparison(
        matched=matched,
        verdicts=verdicts,
        mean=geometric_mean(verdicts),
        means={backend: mean for backend, mean in means.items() if mean is not None},
        rules=rules,
        noise_floor=floor,
        gate_result=gate_result,
    )


def _process_noise(floor: NoiseFloor | None, matched: Matched) -> ProcessNoise:
    if floor is not None:
        return ProcessNoise(spread=floor.process, source="selfcheck")
    sides = [side for pair in matched.pairs for side in pair if side is not None]
    # In turns, a process stands for a run.
    learnt = None if matched.turns else spread_of_medians(side.block_ms for side in sides)
    return ASSUMED if learnt is None else ProcessNoise(spread=learnt, source="rows")


def _side(path: Folder, python: str | None = None, *, salvage: bool) -> Side:
    """A run, or one of its environments, without its samples."""
    run = read_run(path, salvage=salvage)
    if not run.rows:
        raise NotComparable(
            f"{visible(str(path))}: no case has a row; nothing was measured there; resume it, or"
            " compare another run"
        )
    meta, name, cases = {**run.meta, "cases": []}, str(run.meta["run"]), _cases(run)
    if python is not None:
        meta["environment"] = _environment(run, python)
        name = f"{name}@{python}"
        cases = [case for case in cases if case.problem["python"] == python]
    source = Source(name=name, path=run.path, meta=meta, python=python)
    return Side(source=source, cases=cases, notes=run.notes)


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


def _case_id(case: CaseSamples, source: Source) -> str:
    """The id by which cases are matched: without its environment, if one was selected."""
    return case.case if source.python is None else case.case.removesuffix(f"-{source.python}")


def _cases(run: Run) -> list[CaseSamples]:
    cases = []
    for row in run.rows:
        try:
            cases.append(case_samples(row, run.meta))
        except (ValueError, OverflowError) as error:
            raise BadRun(
                f"{visible(str(run.path / 'rows.jsonl'))}: {visible(row['case'])}: {error}"
            ) from None
    return cases + [not_started(planned, run.meta["device"]) for planned in run.missing]


def _problem_of(case: CaseSamples) -> tuple[Any, ...]:
    """What the backends of one group share: of copies, only those of one are compared."""
    return (*problem(case.problem).values(), case.replica)


def _refuse_other_device(base: Source, new: Source, *, allow: bool) -> None:
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
    """The facts that differ: FACTS, or with `every` all that are known."""
    facts = dict.fromkeys((*FACTS, *base["environment"], *new["environment"])) if every else FACTS
    before, now = (
        {"device": one["device"]}
        | {fact: one["environment"].get(fact) for fact in facts}
        | {ALLOCATOR: allocator(one)}
        for one in (base, new)
    )
    return [
        Difference(fact=fact, base=before[fact], new=now[fact])
        for fact in before
        if before[fact] != now[fact]
    ]
