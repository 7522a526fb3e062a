"""Two runs, or the backends of one run, compared case by case."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from ...harness.files.errors import BadInput, EnvironmentUnmet, NothingSelected, option
from ...harness.files.printable import visible
from ...harness.rows.run_files import Document
from ...harness.stats.intervals import Interval
from ..data.load import rows_of
from ..data.noise_floor import COMMITS, NoiseFloor, is_like, newest_noise_floor
from ..data.row_groups import AXES, LoadedRow, Row, by, problem, varying_axes
from ..data.run_meta import (
    Difference,
    Run,
    device_identity,
    device_name,
    fact_differences,
    read_run,
    run_names,
)
from ..formatting import plural
from ..judging.over import geometric_mean, paired
from ..words import SAME_RATIO
from .several_runs import FEWEST, beside, merged
from .verdict import CaseVerdict, Gate, GateResult, Rules, apply, case_verdicts

Folder = str | Path
Pairing = tuple[Row | None, Row | None]
"""Base and new."""


class DifferentDevices(EnvironmentUnmet, ValueError):
    """One line: the runs were measured on different devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """`only`: backends, shell patterns or parts of case ids. `margin_ratio`: times and energies
    within it are the same. `salvage`: without rows that cannot be read.
    """

    gate: Gate | None = None
    only: Sequence[str] = ()
    margin_ratio: float = SAME_RATIO
    allow_different_devices: bool = False
    salvage: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A run, or several runs as one."""

    name: str
    runs: Sequence[Run]
    rows: Sequence[Row]

    @property
    def path(self) -> Path:
        """Of the first run."""
        return self.runs[0].path

    @property
    def meta(self) -> Document:
        """Of the first run."""
        return self.runs[0].meta

    @property
    def shown(self) -> str:
        """The name, safe to print."""
        return visible(self.name)[:120]

    @property
    def notes(self) -> list[str]:
        return [
            f"{visible(run.meta['run'])[:120]}: {note}" for run in self.runs for note in run.notes
        ]

    @property
    def by_id(self) -> dict[str, Row]:
        return {row["case"]: row for row in self.rows}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The verdicts on pairs of cases. `left_out`: how many of them `only` did not take."""

    base: Side
    new: Side
    verdicts: Sequence[CaseVerdict]
    rules: Rules
    gate_result: GateResult | None
    differences: Sequence[Difference]
    left_out: int

    @property
    def runs(self) -> list[Run]:
        """Each once."""
        return [*{run.path: run for side in (self.base, self.new) for run in side.runs}.values()]

    @property
    def notes(self) -> list[str]:
        return [*dict.fromkeys((*self.base.notes, *self.new.notes))]

    @cached_property
    def floor(self) -> NoiseFloor | None:
        folders = (self.base.path.parent, self.new.path.parent)
        return newest_noise_floor(folders, device_identity(self.new.meta))

    @property
    def axes(self) -> list[str]:
        """By which the problems are told apart; the two runs are no such axis."""
        return varying_axes([problem(one.shown) | {"run": ""} for one in self.verdicts])

    def of(self, metric: str) -> list[CaseVerdict]:
        return [one for one in self.verdicts if one.metric == metric]

    @cached_property
    def means(self) -> Mapping[str, Interval]:
        """The mean ratio of all latencies, by the name "", and of each backend."""
        marked = [one for one in self.of("latency") if one.mark is not None]
        groups = {"": tuple(marked)} | by(marked, lambda one: str(one.shown["backend"]))
        found = {
            name: geometric_mean([one.ratio for one in some if one.ratio])
            for name, some in groups.items()
        }
        return {name: mean for name, mean in found.items() if mean is not None}


def compare_runs(
    base: Folder | Sequence[Folder], new: Folder | Sequence[Folder], asked: Criteria = Criteria()
) -> Comparison:
    """Case by case, by case id. Of two versions that were measured alternately all runs of each are
    given, and paired turn by turn.

    Raises BadRun, BadInput, DifferentDevices and NothingSelected.
    """
    if isinstance(base, str | Path) and isinstance(new, str | Path):
        before, now = read_sides([base, new], asked)
        return _by_case(before, now, asked)
    assert not isinstance(base, str | Path)
    assert not isinstance(new, str | Path)
    if len(base) != len(new):
        raise BadInput(
            f"base has {plural(len(base), 'run')} and new {len(new)}; wanted the same number, as a"
            " turn is one run of each; leave out the runs without a partner"
        )
    before, now = (as_one(read_sides(some, asked)) for some in (base, new))
    return _by_case(before, now, asked, turns=len(base))


def compare_history(
    earlier: Iterable[Folder], most: int, new: Folder, asked: Criteria = Criteria()
) -> Comparison:
    """`new` against the `most` newest of the `earlier` runs, given newest first, that were measured
    on its machine with its versions and settings: their middle, and how much they differ.

    Raises BadRun, BadInput and NothingSelected.
    """
    (now,) = read_sides([new], asked)
    sides = (side for path in earlier for side in read_sides([path], asked))
    base = list(islice((side for side in sides if is_like(side.meta, now.meta)), most))
    if len(base) < FEWEST:
        raise BadInput(
            f"last:{most}: {plural(len(base), 'finished run')} like {now.shown} before it (same"
            f" scenario, machine, versions and settings); wanted {FEWEST} or more; measure again,"
            " or compare with one run"
        )
    before = as_one(base[::-1])
    known = before.by_id
    now = replace(now, rows=[beside(row, known.get(row["case"])) for row in now.rows])
    return _by_case(before, now, replace(asked, allow_different_devices=False), history=True)


def compare_backends(path: Folder, baseline: str, asked: Criteria = Criteria()) -> Comparison:
    """Every other backend of a run with `baseline`, by problem.

    Raises BadRun, BadInput and NothingSelected.
    """
    (run,) = read_sides([path], asked)
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
        raise BadInput(
            f"{run.shown} has no other backend on a problem of {visible(baseline)}; name another"
            f" one with {option('against')}"
        )
    return _compared(run, run, pairs, asked, baseline=baseline)


def read_sides(paths: Sequence[Folder], asked: Criteria) -> list[Side]:
    """One per run; the same run has the same rows. Raises BadRun and BadInput."""
    runs = {Path(path): read_run(path, salvage=asked.salvage) for path in paths}
    for path, run in runs.items():
        if not run.rows:
            raise BadInput(
                f"{visible(str(path))}: no case has a row; nothing was measured there; resume it,"
                " or compare another run"
            )
    rows = iter(rows_of([*runs.values()]))
    sides = {
        path: Side(name=name, runs=[run], rows=[*islice(rows, len(run.rows) + len(run.missing))])
        for (path, run), name in zip(runs.items(), run_names([*runs.values()]), strict=True)
    }
    return [sides[Path(path)] for path in paths]


def as_one(sides: Sequence[Side]) -> Side:
    """The runs of one side as one."""
    for other in sides[1:]:
        _refuse_other_device(sides[0], other)
    name = f"{len(sides)} runs, {sides[0].name} to {sides[-1].name}"
    return Side(
        name=name if len(sides) > 1 else sides[0].name,
        runs=[run for side in sides for run in side.runs],
        rows=[*map(LoadedRow, merged([side.rows for side in sides]))],
    )


def _by_case(base: Side, new: Side, asked: Criteria, **rules: Any) -> Comparison:
    """Pairs by case id. `rules`: some of the Rules.

    Raises BadInput, DifferentDevices and NothingSelected.
    """
    if not asked.allow_different_devices:
        _refuse_other_device(base, new)
    pairs = _pairs(new.rows, base.rows, ["case"])
    if not any(one for one, _ in pairs):
        raise BadInput(
            f"{new.shown} and {base.shown} have no case in common; compare runs of the same"
            " scenario"
        )
    known = new.by_id
    pairs += [(row, None) for case, row in base.by_id.items() if case not in known]
    return _compared(base, new, pairs, asked, **rules)


def _pairs(rows: Sequence[Row], bases: Sequence[Row], on: Sequence[str]) -> list[Pairing]:
    """Of all rows, also of those without a base."""
    before = {row["case"]: base for row, base, _ in paired(rows, bases, on)}
    return [(before.get(row["case"]), row) for row in rows]


def _compared(
    base: Side, new: Side, every: Sequence[Pairing], asked: Criteria, **rules: Any
) -> Comparison:
    """`every` pair; those that `only` takes are compared."""
    pairs = _selected(every, asked.only)
    published = any(side.meta.get("source") for side in (base, new))
    differences = [] if published or base is new else fact_differences(base.meta, new.meta)
    judged_by = Rules(
        margin_ratio=asked.margin_ratio,
        environment_differs=any(one.fact not in COMMITS for one in differences),
        other_device=published or _fact_of_other_device(base, new) is not None,
        **rules,
    )
    verdicts = case_verdicts(pairs, judged_by)
    return Comparison(
        base=base,
        new=new,
        verdicts=verdicts,
        rules=judged_by,
        gate_result=apply(asked.gate, verdicts, asked.margin_ratio) if asked.gate else None,
        differences=differences,
        left_out=len(every) - len(pairs),
    )


def _selected(pairs: Sequence[Pairing], only: Sequence[str]) -> Sequence[Pairing]:
    """The pairs that the patterns take, as `attnbench run --only` does. Raises NothingSelected."""

    def taken(row: Row) -> bool:
        return any(
            pattern in (row["case"], row["backend"]) or fnmatchcase(row["case"], f"*{pattern}*")
            for pattern in only
        )

    if not only:
        return pairs
    found = [pair for pair in pairs if (one := pair[1] or pair[0]) and taken(one)]
    if not found:
        example = next((one["case"] for pair in pairs if (one := pair[1] or pair[0])), "none")
        raise NothingSelected(
            f"{option('only')}: no compared case matches {visible(', '.join(only))[:120]}; wanted"
            f" backends, or parts of case ids such as {visible(example)[:120]}"
        )
    return found


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
