"""`attnbench compare`: did a case become slower, and than what; and runs that are named for it."""

import gc
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..api.gate import EXIT_CODES, USUAL_MARGIN
from ..api.sides import against, named_backend, runs_in
from ..files.errors import BadInput
from ..verbs import completion
from .options import (
    DEFAULT_ROOT,
    OUTPUT,
    Root,
    Salvage,
    Texts,
    argument,
    option,
    own,
    own_option,
    switch,
)

if TYPE_CHECKING:
    from ...reports.comparison.compare import Comparison

COMPARED, GATE, BASELINES = "What is compared", "Gate", "Baselines"
Margin = Annotated[
    str, option("--margin PERCENT", "Times and energies within it are the same.", COMPARED)
]
BASE = (
    "Run that is compared with: folder, name, 'latest', a baseline's name; last:5: the five runs of"
    " its scenario before NEW."
)


class Shape(StrEnum):
    TABLE = "table"
    MD = "md"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is held against what: which cases, and how strictly they are read."""

    base: Annotated[str, argument("BASE", BASE, completion.runs)] = "latest"
    new: str | None = own(
        argument("NEW", "Run that is judged. Without it: --against.", completion.runs)
    )
    baseline: str | None = own_option(
        "--against --baseline BACKEND",
        "Within one run: the other backends against this one.",
        COMPARED,
        completion.one_backend,
    )
    turns: bool = switch(
        "--turns",
        "BASE and NEW are folders of runs that were measured in turns: one of each, and again.",
        COMPARED,
    )
    only: Texts = own_option(
        "--only PATTERN", "Compare only cases whose id or backend matches; repeatable.", COMPARED
    )
    margin: Margin = USUAL_MARGIN
    allow_different_devices: bool = switch(
        "--allow-different-devices", "Compare runs of different devices.", COMPARED
    )
    salvage: Salvage = False

    def __post_init__(self) -> None:
        if self.new is not None and self.baseline is not None:
            raise BadInput(
                "both NEW and --against; name two runs, or one run and --against BACKEND"
            )
        if self.turns and self.new is None:
            raise BadInput("--turns: one folder of runs; name two, those of BASE and those of NEW")


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOptions:
    gate: str | None = own_option(
        "--gate FILE|EXPR",
        "Exit 3 if a case is worse by more: 'latency: 5%, peak_bytes: 0%', or noise (what noise"
        " explains is harmless), or a YAML file of these. Exit 6 if it decided nothing.",
        GATE,
    )
    fail_on_undecided: bool = switch(
        "--fail-on-undecided", "With --gate: exit 3 also if a case is not confirmed.", GATE
    )


def compare(
    asked: Asked,
    gate: GateOptions,
    name: str | None = own_option(
        "--save NAME", "Name BASE, to compare with it later; compare nothing now.", BASELINES
    ),
    force: bool = switch("--force", "With --save: replace a baseline of this name.", BASELINES),
    format_: Shape = own_option(
        "--format table|md|json", "How it is printed.", OUTPUT, default=Shape.TABLE
    ),
    out: Root = DEFAULT_ROOT,
) -> None:
    """Compare two runs, or the backends of one run. Each case is faster, slower, the same or not
    confirmed.

    Exit code 3 where --gate finds a regression, 6 where it decided nothing, 4 where the devices
    differ.
    """
    if gate.fail_on_undecided and gate.gate is None:
        raise BadInput("--fail-on-undecided belongs to --gate")
    if force and name is None:
        raise BadInput("--force belongs to --save")
    if name is not None:
        if asked.new or asked.baseline or gate.gate:
            raise BadInput("--save: names one run; leave out NEW, --against and --gate")
        return _save(name, asked.base, out, force=force)

    # large runs are millions of objects without a cycle among them; looking for one takes 40 % of
    # the time
    gc.disable()
    comparison = _compared(asked, gate, out)
    print_comparison(comparison, format_)
    result = comparison.gate_result
    raise typer.Exit(EXIT_CODES[result.outcome] if result else 0)


def _compared(asked: Asked, gate: GateOptions, out: Path) -> "Comparison":
    from ...reports.comparison.compare import compare_backends, compare_interleaved, compare_runs
    from ...reports.comparison.gate import Gate
    from ..api.margins import margin_ratio, read_margins
    from ..rows.names import find, number_of_last

    limits = None
    if gate.gate is not None:
        margins = read_margins(gate.gate)
        limits = Gate(margins=margins, fail_on_undecided=gate.fail_on_undecided)
    base, new = asked.base, asked.new
    settings: dict[str, Any] = {
        "only": [named_backend(pattern) for pattern in asked.only or ()],
        "margin_ratio": margin_ratio(asked.margin),
        "salvage": asked.salvage,
    }
    apart = settings | {"allow_different_devices": asked.allow_different_devices}
    if new is not None and asked.turns:
        return compare_interleaved(runs_in(base), runs_in(new), limits, **apart)
    if new is not None and number_of_last(base):
        return against(base, find(new, out), out, limits, **settings)
    path = find(base, out)
    if new is not None:
        other = find(new, out)
        found = compare_runs(path, other, limits, **apart)
        if other == path:
            same = f"{base} and {new} are the same run, {path.name}"
            typer.echo(f"note: {same}; measure again before you compare", err=True)
        return found
    if asked.baseline is None:
        raise BadInput(
            "one run and nothing to hold it against; name a second run, or --against BACKEND"
        )
    return compare_backends(path, named_backend(asked.baseline), limits, **settings)


def print_comparison(found: "Comparison", shape: Shape) -> None:
    from ...reports.comparison import text

    if shape is not Shape.TABLE:
        typer.echo(text.markdown(found) if shape is Shape.MD else text.as_json(found), nl=False)
        return
    from ...reports.elements import Text
    from ..verbs.tables import show

    table = text.table(found)
    sentences = [Text(text=sentence) for sentence in text.sentences(found)]
    show([table, *sentences] if table.rows else sentences)


def _save(name: str, run: str, out: Path, *, force: bool) -> None:
    """Name a run, print the file that keeps the name, and say what comparisons can show."""
    from ..rows import names
    from ..rows.record import Status
    from ..terminal.progress import counts, say
    from .baseline import what_it_shows

    found = names.find(run, out)
    path, state = names.save(name, found, out, force=force)
    typer.echo(path)
    say(what_it_shows(found), stderr=True)
    others = Counter({one: count for one, count in state.statuses.items() if one != Status.OK})
    if others:
        count = others.total()
        cases = f"{count} of {state.planned} cases {'has' if count == 1 else 'have'}"
        say(f"note: {cases} no time to compare with: {counts(others)}", stderr=True)
