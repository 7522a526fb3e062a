"""`attnbench compare`: did a case become slower, and than what; and runs that are named for it."""

import gc
import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..files.errors import BadInput, Spelling, instead_of, option, shown
from . import completion
from .fields import DEFAULT_ROOT, Margin, Runs, Salvage, Several, listed
from .output import form_of, write
from .request import Option, Verb, refuse

if TYPE_CHECKING:
    import pandas as pd

    from ...reports.comparison.compare import Comparison

USUAL_MARGIN = "5%"
NOTHING_DECIDED = 6
FORMS = ("html", "md", "json")
NOISE = "noise"
METRICS = ("latency", "peak_bytes", "energy_per_call")
ALIASES = {"energy_per_call_j": "energy_per_call", "latency_ms": "latency"}
PERCENT = re.compile(r"\s*([0-9]{1,6}(?:\.[0-9]{1,6})?|\.[0-9]{1,6})\s*%\s*")
WANTED = "wanted metrics with percentages, such as `latency: 5%, peak_bytes: 0%`"
Margins = dict[str, float | None]
Entry = tuple[str, Any, str, str]
"""A metric, its margin, and the places of both."""
EXIT_CODES = {"passed": 0, "failed": 3, "nothing decided": NOTHING_DECIDED}


def as_text(value: Any) -> Any:
    """Of a path, or a `Run`."""
    path = getattr(value, "path", value)
    return str(path) if isinstance(path, Path) else path


def run_argument(name: str) -> Option:
    return Option(name, complete=completion.runs, parse=as_text, argument=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareRequest:
    base: Annotated[str, run_argument("BASE")] = "latest"
    """Reference run: folder, name, 'latest' or a baseline; last:5 takes the five runs of the
    scenario before NEW.
    """
    new: Annotated[str | None, run_argument("NEW")] = None
    """Run to judge; leave it out with --against."""
    against: Annotated[
        str | None,
        Option("BACKEND", also=("baseline",), complete=completion.one_backend),
    ] = None
    """Within one run, compare the other backends with this one."""
    turns: Annotated[bool, Option()] = False
    """BASE and NEW are folders of runs that were measured alternately."""
    only: Annotated[Several, Option("PATTERN", parse=listed)] = ()
    """Compare only cases whose id or backend matches; repeatable."""
    margin: Margin = USUAL_MARGIN
    allow_different_devices: Annotated[bool, Option()] = False
    """Allow runs of different devices."""
    salvage: Salvage = False
    gate: Annotated[str | None, Option("FILE|EXPR")] = None
    """Exit 3 if a case is worse by more than 'latency: 5%, peak_bytes: 0%', than 'latency: noise'
    (the machine's own), or than a YAML file says. Exit 6 if nothing is decided.
    """
    fail_on_undecided: Annotated[bool, Option(needs="gate")] = False
    """With --gate, also exit 3 if a case is not confirmed."""
    save: Annotated[str | None, Option("NAME", of=Spelling.SHELL)] = None
    """Name BASE for later comparisons; compare nothing now."""
    force: Annotated[bool, Option(needs="save", of=Spelling.SHELL)] = False
    """With --save, replace a baseline of this name."""
    format: Annotated[Literal["table", "html", "md", "json"] | None, Option(of=Spelling.SHELL)] = (
        None
    )
    """Output format (default: by FILE's ending, else table)."""
    output: Annotated[str | None, Option("FILE", short="-o", of=Spelling.SHELL)] = None
    """File to write: a page (.html, .md) or .json; - is stdout."""
    runs: Runs = DEFAULT_ROOT

    def __post_init__(self) -> None:
        new, against = option("NEW"), option("against")
        one_of, gate = option("against", "BACKEND"), option("gate")
        is_one = self.new is None
        refuse(
            {
                f"--save: names one run; leave out {new}, {against} and {gate}": self.save
                is not None
                and (self.new or self.against or self.gate),
                f"{option('turns')}: one folder given; wanted two: {option('BASE')},"
                f" {new}": self.turns and is_one,
                f"both {new} and {against}; wanted two runs, or one run and {one_of}": not is_one
                and self.against is not None,
                f"one run given; wanted a second run to compare with, or {one_of}": is_one
                and self.against is None
                and self.save is None,
                f"--format table: only for the terminal; with {option('output')} wanted html, md"
                " or json": self.format == "table" and self.output is not None,
            }
        )


def tell(request: CompareRequest) -> int:
    """Compare two runs, or the backends of one run. Each case is faster, slower, the same or not
    confirmed.

    Exit code 3: --gate found a regression; 6: it decided nothing; 4: the devices differ.
    """
    if request.save is not None:
        save(request.save, request)
        return 0
    # large runs are millions of objects without a cycle among them; looking for one takes 40 % of
    # the time
    gc.disable()
    given = None if request.format == "table" else request.format
    form = form_of(given, request.output, FORMS, None)
    if form == "html" and request.output is None:
        raise BadInput(f"html: wanted a file for the page; add {option('output', 'FILE')}")
    found = compared(request)
    if form is None:
        print_comparison(found)
    else:
        write(rendered(found, form), request.output)
    if request.new is not None and found.base.path == found.new.path:
        same = f"{request.base} and {request.new} are the same run, {found.new.path.name}"
        typer.echo(f"note: {same}; measure again before you compare", err=True)
    result = found.gate_result
    return EXIT_CODES[result.outcome] if result else 0


def compare(request: CompareRequest) -> "pd.DataFrame":
    """Did a case become slower? A row per case and metric: ratio, interval and verdict; `attrs` has
    what holds for all, as the result of `gate`. Raises Refusal.
    """
    import pandas as pd

    document = json.loads(rendered(compared(request), "json"))
    frame = pd.DataFrame(document.pop("cases"))
    frame.attrs |= document
    return frame


def compared(request: CompareRequest) -> "Comparison":
    """Raises Refusal."""
    from ...reports.comparison.compare import (
        Criteria,
        compare_backends,
        compare_history,
        compare_runs,
    )
    from ...reports.comparison.verdict import Gate
    from ..rows.names import earlier_runs, find, number_of_last

    limits, root = None, request.runs
    if request.gate is not None:
        margins = read_margins(request.gate)
        limits = Gate(margins=margins, fail_on_undecided=request.fail_on_undecided)
    base, new = request.base, request.new
    asked = Criteria(
        gate=limits,
        only=[*map(named_backend, request.only)],
        margin_ratio=margin_ratio(request.margin),
        allow_different_devices=request.allow_different_devices,
        salvage=request.salvage,
    )
    if new is None:
        return compare_backends(find(base, root), named_backend(request.against or ""), asked)
    if request.turns:
        return compare_runs(runs_in(base), runs_in(new), asked)
    if most := number_of_last(base):  # runs of one device
        run = find(new, root)
        return compare_history(earlier_runs(run, root), most, run, asked)
    return compare_runs(find(base, root), find(new, root), asked)


def named_backend(text: str) -> str:
    """The name in rows of a backend as it was typed, such as `mine:plain` of a user's module."""
    from ...impls.discovery.names import typed_names
    from ...impls.discovery.registry import unknown

    names = typed_names(text)
    return names[-1] if unknown(names[0]) else names[0]


def runs_in(folder: str | Path) -> list[Path]:
    """Oldest first. Raises BadInput."""
    from ..rows.run_store import runs

    found = runs(Path(folder))
    if not found:
        raise BadInput(
            f"{folder}: no runs here; wanted the {option('runs')} folder of the runs of one side"
        )
    return found


def rendered(found: "Comparison", form: str) -> str:
    """As html, md or json."""
    if form == "json":
        from ...reports.comparison.document import as_json

        return as_json(found)
    from ...reports.pages import html, markdown
    from ...reports.pages.comparison import page

    return html.render(page(found)) if form == "html" else markdown.render(page(found))


def print_comparison(found: "Comparison") -> None:
    from ...reports.pages.comparison import page
    from ...reports.pages.terminal import answers
    from ..terminal.progress import echo

    for part in [*answers(page(found))]:  # all or nothing is printed
        echo(part)


# ---- baselines -----------------------------------------------------------------------------------


def save(name: str, request: CompareRequest) -> None:
    """Name a run, print the file that keeps the name, and say what comparisons can show."""
    from ..rows import names
    from ..rows.record import Status
    from ..terminal.progress import counts, say

    run = names.find(request.base, request.runs)
    path, state = names.save(name, run, request.runs, force=request.force)
    typer.echo(path)
    say(_what_it_shows(run), stderr=True)
    others = Counter({one: count for one, count in state.statuses.items() if one != Status.OK})
    if others:
        count = others.total()
        cases = f"{count} of {state.planned} cases {'has' if count == 1 else 'have'}"
        say(f"note: {cases} no time to compare with: {counts(others)}", stderr=True)


def _what_it_shows(run: Path) -> str:
    """By the rows of the run, and by how much runs are known to differ on its machine."""
    from ...reports.data.load import rows_of
    from ...reports.data.noise_floor import ASSUMED_RATIO
    from ...reports.data.run_meta import read_run
    from ...reports.formatting import rough_percent_text

    timed = [row for row in rows_of([read_run(run)]) if row["latency_ms"] is not None]
    if not timed:
        return "Later comparisons show changes of bytes; no case was timed."
    ratio = timed[0]["between_runs_ratio"]
    differ = rough_percent_text(ASSUMED_RATIO if ratio is None else ratio)
    known = (
        "the run-to-run noise of this machine."
        if ratio is not None
        else "until this machine's noise is known. Measure it once: attnbench doctor --deep (2 min)"
    )
    return f"Later comparisons show all changes of bytes, and of time above {differ}, {known}"


# ---- margins: `latency: 5%, peak_bytes: 0%`, written out or in a YAML file ------------------


def read_margins(text: str) -> Margins:
    """Metric -> margin as a ratio; None for `noise`, the machine's own. Raises BadInput.

    An existing file is read as YAML, other text as an expression.
    """
    try:
        is_file = Path(text).is_file()
    except (OSError, ValueError):  # too long for a path, or with a NUL byte
        is_file = False
    if not text.strip() and not is_file:
        raise BadInput(f"{option('gate')}: empty; {WANTED}")
    return _margins(_of_file(Path(text)) if is_file or ":" not in text else _of_expression(text))


def margin_ratio(text: str) -> float:
    """Of `--margin`: 0.05 for 5%. Raises BadInput."""
    found = PERCENT.fullmatch(text)
    if found is None:
        raise BadInput(
            f"{option('margin')}: found {shown(text)}; wanted a percentage from 0%, as 5%"
        )
    return float(found[1]) / 100


def _of_file(path: Path) -> Iterable[Entry]:
    if not os.path.lexists(path):
        raise BadInput(
            f"{option('gate')} {shown(str(path))}: no such file; {WANTED}, or a YAML file of these"
        )
    from ..scenario.document import read_yaml  # all of harness.scenario, which reports do without

    document = read_yaml(path)
    if document.data is None:
        raise BadInput(f"{document.origin}: empty; {WANTED}")
    if not isinstance(document.data, dict):
        raise BadInput(f"{document.place(())}: found {shown(document.data)}; {WANTED}")
    for name, value in document.data.items():
        yield name, value, document.place((name,), of_key=True), document.place((name,))


def _of_expression(text: str) -> Iterable[Entry]:
    for part in text.split(","):
        name, colon, value = part.partition(":")
        if not colon:
            raise BadInput(f"{option('gate')}: found {shown(part.strip())}; {WANTED}")
        yield name.strip(), value.strip(), option("gate"), option("gate")


def _margins(entries: Iterable[Entry]) -> Margins:
    margins: Margins = {}
    for name, value, at_name, at_value in entries:
        metric = ALIASES.get(name, name)
        if metric not in METRICS:
            hint = instead_of(name, METRICS)
            raise BadInput(f"{at_name}: {shown(name)}: not a metric that can be gated; {hint}")
        if metric in margins:
            raise BadInput(f"{at_name}: {metric}: given twice; keep one")
        found = PERCENT.fullmatch(value) if isinstance(value, str) else None
        if found is None and value != NOISE:
            raise BadInput(
                f"{at_value}: {metric}: found {shown(value)}; wanted a percentage from 0%, or"
                " noise; write it as 5%"
            )
        margins[metric] = float(found[1]) / 100 if found else None
    return margins


VERBS = {
    "compare": Verb(
        tell=tell,
        answer=compare,
        examples=(
            "attnbench compare latest --save main",
            "attnbench compare main latest --gate 'latency: 5%, peak_bytes: 0%'",
            "attnbench compare latest --against fused --only sdpa",
            "attnbench compare base/ head/ --turns -o page.html",
        ),
        usual="against only margin gate turns save output runs",
    )
}
