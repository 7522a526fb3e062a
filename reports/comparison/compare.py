"""Two runs, or the backends of one run, compared case by case."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import islice
from pathlib import Path

from ...harness.files.errors import BadInput, EnvironmentUnmet, NothingSelected, option
from ...harness.files.printable import visible
from ...harness.stats.intervals import Interval
from ..data.load import rows_of
from ..data.noise_floor import COMMITS, NoiseFloor, newest_noise_floor
from ..data.read import Document, read_run
from ..data.row_groups import AXES, LoadedRow, Row, by
from ..data.run_meta import (
    Difference,
    device_identity,
    device_name,
    fact_differences,
)
from ..formatting import plural
from ..judging.many import geometric_mean
from ..judging.noise import Noise, noise_of
from ..judging.over import paired
from ..judging.ratio import Ratio
from ..words import SAME_RATIO
from .gate import Gate, GateResult, apply
from .merged_runs import merged
from .verdict import CaseVerdict, Rules, case_verdicts

Folder = str | Path
Pair = tuple[Row | None, Row | None]
"""Base and new."""


class DifferentDevices(EnvironmentUnmet, ValueError):
    """One line: the runs were measured on different devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A run, or several runs as one."""

    name: str
    path: Path
    meta: Document
    rows: Sequence[Row]
    notes: Sequence[str]
    is_several: bool = False

    @property
    def shown(self) -> str:
        """The name, safe to print."""
        return visible(self.name)[:120]

    @property
    def by_id(self) -> dict[str, Row]:
        return {row["case"]: row for row in self.rows}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The verdicts on pairs of cases.

    `baseline`: the backend that the others of one run are compared with. `left_out`: how many pairs
    `only` did not take.
    """

    base: Side
    new: Side
    verdicts: Sequence[CaseVerdict]
    rules: Rules
    floor: NoiseFloor | None
    gate_result: GateResult | None
    baseline: str | None
    differences: Sequence[Difference]
    notes: Sequence[str]
    left_out: int

    @property
    def latencies(self) -> list[CaseVerdict]:
        return [one for one in self.verdicts if one.metric == "latency"]

    @property
    def noise(self) -> Noise:
        """Of the device, as it widens the intervals."""
        return noise_of(self.new.rows[0])

    @cached_property
    def mean(self) -> Interval | None:
        """Of all latency ratios."""
        return geometric_mean(_ratios(self.latencies))

    @cached_property
    def means(self) -> Mapping[str, Interval]:
        """Those by backend."""
        by_backend = by(self.latencies, lambda one: str(one.shown["backend"]))
        found = {name: geometric_mean(_ratios(some)) for name, some in by_backend.items()}
        return {backend: mean for backend, mean in found.items() if mean is not None}


def _ratios(verdicts: Sequence[CaseVerdict]) -> list[Ratio]:
    """Those that have a mark: the others did not do the same work."""
    return [one.ratio for one in verdicts if one.ratio is not None and one.mark is not None]


def compare_runs(
    base: Folder,
    new: Folder,
    gate: Gate | None,
    *,
    only: Sequence[str] = (),
    margin_ratio: float = SAME_RATIO,
    allow_different_devices: bool = False,
    salvage: bool = False,
) -> Comparison:
    """Case by case, by case id.

    `only`: backends, shell patterns or parts of case ids. `margin_ratio`: times within it are the
    same. `salvage`: without rows that cannot be read. Raises BadRun, BadInput, DifferentDevices and
    NothingSelected.
    """
    before, now = read_sides([base, new], salvage=salvage)
    if before.name == now.name and before.path != now.path:
        before, now = (replace(one, name=str(one.path)) for one in (before, now))
    return compare_sides(before, now, gate, only, margin_ratio, allow=allow_different_devices)


def compare_interleaved(
    base: Sequence[Folder],
    new: Sequence[Folder],
    gate: Gate | None,
    *,
    only: Sequence[str] = (),
    margin_ratio: float = SAME_RATIO,
    allow_different_devices: bool = False,
    salvage: bool = False,
) -> Comparison:
    """Runs of two versions that were measured alternately, paired turn by turn.

    Raises BadRun, BadInput, DifferentDevices and NothingSelected.
    """
    if len(base) != len(new):
        raise BadInput(
            f"base has {plural(len(base), 'run')} and new {len(new)}; wanted as many: a turn is one"
            " run of each"
        )
    before, now = (as_one(read_sides(some, salvage=salvage)) for some in (base, new))
    allow, turns = allow_different_devices, len(base)
    return compare_sides(before, now, gate, only, margin_ratio, allow=allow, turns=turns)


def as_one(runs: Sequence[Side]) -> Side:
    """The runs of one side as one."""
    for other in runs[1:]:
        _refuse_other_device(runs[0], other)
    name = f"{len(runs)} runs, {runs[0].name} to {runs[-1].name}"
    return replace(
        runs[0],
        name=name if len(runs) > 1 else runs[0].name,
        rows=[*map(LoadedRow, merged([run.rows for run in runs]))],
        notes=[f"{run.shown}: {note}" for run in runs for note in run.notes],
        is_several=True,
    )


def compare_sides(
    base: Side,
    new: Side,
    gate: Gate | None,
    only: Sequence[str],
    margin_ratio: float,
    *,
    allow: bool,
    turns: int | None = None,
    history: bool = False,
) -> Comparison:
    """Pairs by case id; the others as in verdict.Rules. Raises BadInput, DifferentDevices and
    NothingSelected.
    """
    if not allow:
        _refuse_other_device(base, new)
    pairs = _pairs(new.rows, base.rows, ["case"])
    if not any(one for one, _ in pairs):
        raise BadInput(
            f"{new.shown} and {base.shown} have no case in common; compare runs of the same"
            " scenario"
        )
    known = new.by_id
    pairs += [(row, None) for case, row in base.by_id.items() if case not in known]
    return _compared(base, new, pairs, gate, only, margin_ratio, turns=turns, history=history)


def _pairs(rows: Sequence[Row], bases: Sequence[Row], on: Sequence[str]) -> list[Pair]:
    """Of all rows, also of those without a base."""
    before = {row["case"]: base for row, base, _ in paired(rows, bases, on)}
    return [(before.get(row["case"]), row) for row in rows]


def compare_backends(
    path: Folder,
    baseline: str,
    gate: Gate | None,
    *,
    only: Sequence[str] = (),
    margin_ratio: float = SAME_RATIO,
    salvage: bool = False,
) -> Comparison:
    """Every other backend of a run with `baseline`, by problem.

    Raises BadRun, BadInput and NothingSelected.
    """
    (run,) = read_sides([path], salvage=salvage)
    known = list(dict.fromkeys(row["backend"] for row in run.rows))
    if baseline not in known:
        raise BadInput(
            f"{option('against')}: no backend {visible(repr(baseline))} in {run.shown}; there are:"
            f" {visible(', '.join(known))}"
        )
    sides = by(run.rows, lambda row: row["backend"] == baseline)
    # of copies, only those of one group are compared
    pairs = _pairs(sides.get(False, ()), sides[True], [*AXES, "replica"])
    if not any(one for one, _ in pairs):
        raise BadInput(f"{run.shown} has no other backend on a problem of {visible(baseline)}")
    return _compared(run, run, pairs, gate, only, margin_ratio, baseline=baseline)


def _selected(pairs: Sequence[Pair], only: Sequence[str]) -> Sequence[Pair]:
    """The pairs that the patterns take, as `attnbench run --only` does."""

    def taken(row: Row) -> bool:
        return not only or any(
            pattern in (row["case"], row["backend"]) or fnmatchcase(row["case"], f"*{pattern}*")
            for pattern in only
        )

    cases = [pair[1] or pair[0] for pair in pairs]
    found = [pair for pair, one in zip(pairs, cases, strict=True) if one and taken(one)]
    if only and not found:
        example = next((one["case"] for one in cases if one), "none")
        raise NothingSelected(
            f"{option('only')}: no compared case matches {visible(', '.join(only))[:120]}; wanted"
            f" backends, or parts of case ids such as {visible(example)[:120]}"
        )
    return found


def _compared(
    base: Side,
    new: Side,
    every: Sequence[Pair],
    gate: Gate | None,
    only: Sequence[str],
    margin_ratio: float,
    *,
    baseline: str | None = None,
    turns: int | None = None,
    history: bool = False,
) -> Comparison:
    """`every` pair; those that `only` takes are compared."""
    pairs = _selected(every, only)
    of_backends = baseline is not None
    published = any(side.meta.get("source") for side in (base, new))
    differences = [] if of_backends or published else fact_differences(base.meta, new.meta)
    rules = Rules(
        margin_ratio=margin_ratio,
        turns=turns,
        history=history,
        same_run=of_backends,
        backends=of_backends,
        environment_differs=any(one.fact not in COMMITS for one in differences),
        other_device=published or _fact_of_other_device(base, new) is not None,
    )
    verdicts = case_verdicts(pairs, rules)
    notes = [f"{side.shown}: {note}" for side in (base, new) for note in side.notes]
    folders = (base.path.parent, new.path.parent)
    return Comparison(
        base=base,
        new=new,
        verdicts=verdicts,
        rules=rules,
        floor=newest_noise_floor(folders, device_identity(new.meta)),
        gate_result=apply(gate, verdicts, margin_ratio) if gate else None,
        baseline=baseline,
        differences=differences,
        notes=base.notes if of_backends else notes,
        left_out=len(every) - len(pairs),
    )


def read_sides(paths: Sequence[Folder], *, salvage: bool) -> list[Side]:
    """Raises BadRun and BadInput."""
    runs = [read_run(path, salvage=salvage) for path in paths]
    for path, run in zip(paths, runs, strict=True):
        if not run.rows:
            raise BadInput(
                f"{visible(str(path))}: no case has a row; nothing was measured there; resume it,"
                " or compare another run"
            )
    rows = iter(rows_of(runs))
    return [
        Side(
            name=str(run.meta["run"]),
            path=run.path,
            meta={**run.meta, "cases": []},
            rows=[*islice(rows, len(run.rows) + len(run.missing))],
            notes=run.notes,
        )
        for run in runs
    ]


def _refuse_other_device(base: Side, new: Side) -> None:
    """Published numbers are there to be compared with what one has."""
    fact = _fact_of_other_device(base, new)
    if fact is None or base.meta.get("source") or new.meta.get("source"):
        return
    other, this = (device_name(one.meta) for one in (base, new))
    by = f"; {fact} differs" if other == this else ""
    raise DifferentDevices(
        f"different devices: {visible(other)[:80]} and {visible(this)[:80]}{by}; "
        f"compare runs of one device, or add {option('allow_different_devices', True)}"
    )


def _fact_of_other_device(base: Side, new: Side) -> str | None:
    """By which the devices differ; None if no known fact says so."""
    before, now = device_identity(base.meta), device_identity(new.meta)
    known = sorted(before.keys() & now.keys())
    return next((fact for fact in known if before[fact] != now[fact]), None)
