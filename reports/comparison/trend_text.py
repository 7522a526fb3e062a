"""A trend as sentences, tables and figures, for terminals and pages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from ..data.row_groups import label, problem, varying_axes
from ..data.run_meta import device_name, when_text
from ..elements import Block, Figure, Marked, Panel, Series, Table, Text, note, table_of
from ..formatting import (
    bytes_text,
    more_below,
    number_text,
    paragraph,
    plural,
    ratio_range_text,
)
from ..quantity import Number, Quantity
from ..words import NOT_DECIDED, SEEN, meaning_of
from . import text
from .compare import Side
from .trend import CaseTrend, Change, Trend
from .verdict import BETTER_WORSE
from .verdict_text import clipped

COMMIT = 8  # letters of a commit
WORDS = dict(zip(("less", "more"), BETTER_WORSE["latency"], strict=True))
MOST_PANELS = 12
MOST_RUNS = 500  # in a table


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """Of the table of changes: what a case changed in with one run."""

    at: int
    of: CaseTrend
    change: Change | None
    more_bytes: float | None


def blocks(found: Trend) -> list[Block]:
    """For a terminal: what changed, then the newest run against the base."""
    changed = change_table(found)
    return [
        Text(text=headline(found)),
        *([changed, *marks(found)] if changed.rows else []),
        replace(text.table(found.comparison), title=versus(found)),
        *(Text(text=line) for line in text.sentences(found.comparison)),
        *map(note, found.notes),
    ]


def headline(found: Trend) -> str:
    """`14 runs, 3 Nov 09:00:00 to 26 Nov 09:00:00: time changed in 1 of 9 cases, bytes in none.`"""
    first, last = (when_text(run.meta, clock=True) for run in (found.runs[0], found.runs[-1]))
    confirmed, seen = (
        len({id(one) for one, _ in found.changes(confirmed=sure)}) for sure in (True, False)
    )
    in_bytes = sum(bool(one.more_bytes) for one in found.cases)
    perhaps = f" (seen in {seen} more, not confirmed)" if seen else ""
    return (
        f"{plural(len(found.runs), 'run')}, {first} to {last}: time changed in"
        f" {confirmed or 'none'} of {plural(len(found.cases), 'case')}{perhaps}, bytes in"
        f" {in_bytes or 'none'}."
    )


def versus(found: Trend) -> str:
    comparison = found.comparison
    return f"The newest run against {'the first' if comparison.base is found.runs[0] else 'base'}"


def change_table(found: Trend) -> Table:
    """A line per case and run with which it changed, the first run first."""
    axes = varying_axes([problem(one.case.problem) for one in found.cases]) or ["seq_len"]
    return table_of(
        "From this run on",
        _lines(found),
        {
            "run": lambda line: when_text(found.runs[line.at].meta, clock=True),
            "commit": lambda line: version(found.runs[line.at]),
            "backend": lambda line: clipped(line.of.case.backend),
            "problem": lambda line: label(problem(line.of.case.problem), axes),
            "time": lambda line: _time(line.change) if line.change else "",
            "memory": lambda line: (
                f"×{number_text(line.more_bytes)}" if line.more_bytes is not None else ""
            ),
        },
        optional=("time", "memory"),
        most=text.MOST_ROWS,
    )


def _lines(found: Trend) -> list[_Line]:
    lines = [
        _Line(
            at=at,
            of=one,
            change=next((change for change in one.changes if change.at == at), None),
            more_bytes=one.more_bytes.get(at),
        )
        for one in found.cases
        for at in sorted({*one.more_bytes, *(change.at for change in one.changes)})
    ]
    return sorted(lines, key=lambda line: line.at)


def _time(change: Change) -> Marked:
    """`slower ×1.12 (1.08 to 1.17)`, `◐ ×1.02 (0.99 to 1.05)`."""
    ratio = change.ratio
    words = WORDS.get(change.word, SEEN.sign)
    bounds = ratio_range_text(ratio.low, ratio.high)
    return Marked(
        cell=f"{words} ×{number_text(ratio.value)}{bounds}",
        strong=change.word == "less",
        failed=change.word == "more",
    )


def marks(found: Trend) -> list[Text]:
    """What signs in the table of changes mean."""
    return [Text(text=meaning_of([SEEN]), kind="note")] if found.changes(confirmed=False) else []


def version(run: Side) -> str:
    """The commit, else the version of attnbench."""
    facts = run.meta["environment"]
    commit = facts.get("git")
    return clipped(str(commit)[:COMMIT] if commit else f"v{facts.get('attnbench') or '?'}")


def about(found: Trend) -> str:
    """`AMD EPYC (cpu) · 14 runs · 3 Nov 2026 to 26 Nov 2026`."""
    first, last = (when_text(run.meta) for run in (found.runs[0], found.runs[-1]))
    when = first if first == last else f"{first} to {last}"
    return f"{device_name(found.runs[-1].meta)} · {plural(len(found.runs), 'run')} · {when}"


# ---- for pages -----------------------------------------------------------------------------------


def figure(found: Trend, names: Mapping[str, str]) -> Figure | None:
    """Times over the number of the run, a panel per problem; None without any. `names`: as backends
    are shown.
    """
    by_problem: dict[tuple[object, ...], list[CaseTrend]] = {}
    for one in found.cases:
        if any(one.ratios):
            by_problem.setdefault(tuple(problem(one.case.problem).values()), []).append(one)
    if not by_problem:
        return None
    axes = varying_axes([problem(one.case.problem) for one in found.cases])
    of = f" against {names.get(found.reference, found.reference)}" if found.reference else ""
    shown = list(by_problem.values())[:MOST_PANELS]
    more = more_below(len(by_problem) - len(shown))
    return Figure(
        title="Times over runs",
        caption=paragraph("Bands are 95 % intervals.", more),
        panels=tuple(
            Panel(
                x_label="number of the run",
                y_label=f"time{of}, relative to run {_base(found) + 1}",
                unit="plain",
                series=tuple(_series(one, names) for one in some),
                line=(1.0, ""),
                x_scale="linear",
                title=label(problem(some[0].case.problem), axes) or "all runs",
            )
            for some in shown
        ),
        table=run_table(found),
        same_y=True,
    )


def _base(found: Trend) -> int:
    return next(place for place, run in enumerate(found.runs) if run is found.comparison.base)


def _series(one: CaseTrend, names: Mapping[str, str]) -> Series:
    places = range(1, len(one.ratios) + 1)

    def each(name: str) -> tuple[float | None, ...]:
        values = (None if ratio is None else getattr(ratio, name) for ratio in one.ratios)
        return tuple(value if value is not None and isfinite(value) else None for value in values)

    return Series(
        backend=names.get(one.case.backend, one.case.backend),
        kind="measured",
        x=tuple(map(float, places)),
        y=each("value"),
        low=each("low"),
        high=each("high"),
        busy=tuple(one.disturbed),
    )


def run_table(found: Trend) -> Table:
    """The runs with their numbers, which the figure has below."""
    return table_of(
        "The runs",
        list(enumerate(found.runs))[-MOST_RUNS:],
        {
            "number": lambda pair: pair[0] + 1,
            "run": lambda pair: pair[1].shown,
            "started (UTC)": lambda pair: when_text(pair[1].meta, clock=True),
            "commit": lambda pair: version(pair[1]),
        },
    )


def value_tables(found: Trend) -> Iterator[Table]:
    """Of each case every run's ratio and bytes."""
    axes = varying_axes([problem(one.case.problem) for one in found.cases]) or ["seq_len"]
    for one in found.cases:
        of = f"{clipped(one.case.backend)} at {label(problem(one.case.problem), axes)}"
        numbered = enumerate(zip(one.ratios, one.peaks, strict=True), 1)
        yield table_of(
            of,
            [(number, *values) for number, values in numbered],
            {
                "number of the run": lambda line: line[0],
                "time": lambda line: Quantity.of(line[1], "ratio") if line[1] else "",
                "peak": lambda line: bytes_text(line[2]),
                "bytes": lambda line: Number(line[2]) if line[2] is not None else "",
            },
            folded=True,
        )


def sentences(found: Trend) -> Sequence[str]:
    """Every confirmed change of a time, with the run that it begins with."""
    axes = varying_axes([problem(one.case.problem) for one in found.cases]) or ["seq_len"]
    return [
        f"{clipped(one.case.backend)} at {label(problem(one.case.problem), axes)}:"
        f" {WORDS[change.word]} from {found.runs[change.at].shown} (commit"
        f" {version(found.runs[change.at])}) on, by ×{number_text(change.ratio.value)}"
        f"{ratio_range_text(change.ratio.low, change.ratio.high)}."
        for one, change in found.changes(confirmed=True)
        if change.word != NOT_DECIDED
    ]
