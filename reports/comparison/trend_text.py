"""A trend as sentences, tables and figures, for terminals and pages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from ...harness.stats.intervals import Interval
from ..data.row_groups import AXES, label, problem, varying_axes
from ..data.run_meta import device_name, when_text
from ..elements import Block, Figure, Marked, Panel, Series, Table, Text, note, table_of
from ..formatting import (
    json_fields,
    length_text,
    more_below,
    number_text,
    paragraph,
    plural,
    ratio_range_text,
)
from ..quantity import Number
from ..words import NOT_DECIDED, SEEN, meaning_of
from . import text
from .compare import Side
from .trend import CaseTrend, Change, Trend
from .verdict import BETTER_WORSE
from .verdict_text import clipped, ended_lines

SCHEMA = 1
COMMIT = 8  # letters of a commit
WORDS = dict(zip(("less", "more"), BETTER_WORSE["latency"], strict=True))
MOST_PANELS = 12
MOST_TABLES = 100
MOST_RUNS = 500  # in a table


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """Of the table of changes: what a case changed in with one run."""

    at: int
    of: CaseTrend
    change: Change | None
    more_bytes: int | None


def blocks(found: Trend) -> list[Block]:
    """For a terminal: what changed, then the newest run over the base."""
    return [
        Text(text=headline(found)),
        *changes(found),
        *newest(found),
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


def newest(found: Trend) -> list[Block]:
    """Every case of the newest run over the base, and which of them broke or were mended."""
    axes = axes_of(found)
    of = f"; time against {clipped(found.reference)} in the same blocks" * bool(found.reference)
    table = table_of(
        f"Run {len(found.runs)} over run {found.base + 1}{of}",
        found.cases,
        {
            "backend": lambda one: clipped(one.case.backend),
            "problem": lambda one: label(problem(one.case.problem), axes),
            "time": lambda one: times(one.ratios[-1]),
            "peak": lambda one: bytes_cell(one.peaks[-1]),
            "more bytes": lambda one: more_cell(one.peaks[-1], one.peaks[found.base]),
        },
        most=text.MOST_ROWS,
    )
    ended = map(text.clipped_line, ended_lines(found.comparison.verdicts))
    return [table, *(Text(text=line) for line in ended)]


def times(ratio: Interval | None) -> str:
    """`×1.12 (1.08 to 1.17)`."""
    if ratio is None:
        return ""
    return Number(f"×{number_text(ratio.value)}{ratio_range_text(ratio.low, ratio.high)}")


def bytes_cell(count: int | None) -> str:
    return "" if count is None else length_text(count)


def more_cell(count: int | None, before: int | None) -> str:
    """`+64`, `-1 024`, `0`."""
    if count is None or before is None:
        return ""
    return Number(f"{'+' * (count > before)}{length_text(count - before)}")


def axes_of(found: Trend) -> list[str]:
    return varying_axes([problem(one.case.problem) for one in found.cases]) or ["seq_len"]


def changes(found: Trend) -> list[Block]:
    """A line per case and run with which it changed, the first run first; none without."""
    table = _change_table(found)
    signs = [note(meaning_of([SEEN]))] if found.changes(confirmed=False) else []
    return [table, *signs] if table.rows else []


def _change_table(found: Trend) -> Table:
    axes = axes_of(found)
    return table_of(
        "From this run on",
        _lines(found),
        {
            "run": lambda line: when_text(found.runs[line.at].meta, clock=True),
            "commit": lambda line: version(found.runs[line.at]),
            "backend": lambda line: clipped(line.of.case.backend),
            "problem": lambda line: label(problem(line.of.case.problem), axes),
            "time": lambda line: _time(line.change) if line.change else "",
            "bytes": lambda line: more_cell(line.more_bytes, 0),
        },
        optional=("time", "bytes"),
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
    return Marked(
        cell=f"{WORDS.get(change.word, SEEN.sign)} {times(change.ratio)}",
        strong=change.word == "less",
        failed=change.word == "more",
    )


def version(run: Side) -> str:
    """The commit, else the version of attnbench."""
    commit = run.meta["environment"].get("git")
    return clipped(str(commit)[:COMMIT] if commit else f"v{run.meta.get('attnbench')}")


def about(found: Trend) -> str:
    """`AMD EPYC (cpu) · 14 runs · 3 Nov 2026 to 26 Nov 2026`."""
    first, last = (when_text(run.meta) for run in (found.runs[0], found.runs[-1]))
    when = first if first == last else f"{first} to {last}"
    return f"{device_name(found.runs[-1].meta)} · {plural(len(found.runs), 'run')} · {when}"


# ---- as JSON (docs/format.md) --------------------------------------------------------------------


def document(found: Trend) -> dict[str, Any]:
    """Numbers of runs are from 0, as places in the lists of a case."""
    return {
        "schema": SCHEMA,
        "device": device_name(found.runs[-1].meta),
        "runs": [
            {
                "run": run.name,
                "path": str(run.path),
                "started_utc": run.meta.get("started_utc"),
                "commit": run.meta["environment"].get("git"),
            }
            for run in found.runs
        ],
        "base": found.base,
        "against": found.reference or None,
        "notes": list(found.notes),
        "cases": [_case_fields(one) for one in found.cases],
    }


def _case_fields(one: CaseTrend) -> dict[str, Any]:
    return {
        **json_fields(one.case, "case", "backend"),
        **{axis: one.case.problem.get(axis) for axis in AXES if axis != "run"},
        "times": [ratio and _ratio_fields(ratio) for ratio in one.ratios],
        "changes": [
            {
                "at": change.at,
                "verdict": WORDS.get(change.word, NOT_DECIDED),
                **_ratio_fields(change.ratio),
            }
            for change in one.changes
        ],
        "peak_bytes": list(one.peaks),
        "more_bytes": dict(one.more_bytes),
        "disturbed": list(one.disturbed),
    }


def _ratio_fields(ratio: Interval) -> dict[str, Any]:
    return {"ratio": ratio.value, **json_fields(ratio, "low", "high")}


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
    axes = axes_of(found)
    of = f" against {names.get(found.reference, found.reference)}" if found.reference else ""
    shown = list(by_problem.values())[:MOST_PANELS]
    more = more_below(len(by_problem) - len(shown))
    return Figure(
        title="Times over runs",
        caption=paragraph("Bands are 95 % intervals.", more),
        panels=tuple(
            Panel(
                x_label="number of the run",
                y_label=f"time{of}, relative to run {found.base + 1}",
                unit="plain",
                series=tuple(_series(one, names) for one in some),
                line=(1.0, ""),
                x_scale="linear",
                title=label(problem(some[0].case.problem), axes),
            )
            for some in shown
        ),
        table=run_table(found),
        same_y=True,
    )


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


def value_tables(found: Trend) -> Iterator[Block]:
    """Of each case every run's ratio and bytes."""
    axes = axes_of(found)
    if (left := len(found.cases) - MOST_TABLES) > 0:
        yield note(f"{plural(left, 'more case')} left out.")
    for one in found.cases[:MOST_TABLES]:
        of = f"{clipped(one.case.backend)} at {label(problem(one.case.problem), axes)}"
        numbered = enumerate(zip(one.ratios, one.peaks, strict=True), 1)
        yield table_of(
            of,
            [(number, *values) for number, values in numbered],
            {
                "number of the run": lambda line: line[0],
                "time": lambda line: times(line[1]),
                "peak bytes": lambda line: bytes_cell(line[2]),
            },
            folded=True,
        )


def sentences(found: Trend) -> Sequence[str]:
    """Every confirmed change of a time, with the run that it begins with."""
    axes = axes_of(found)
    return [
        f"{clipped(one.case.backend)} at {label(problem(one.case.problem), axes)}:"
        f" {WORDS[change.word]} from {found.runs[change.at].shown} (commit"
        f" {version(found.runs[change.at])}) on, by {times(change.ratio)}."
        for one, change in found.changes(confirmed=True)
    ]
