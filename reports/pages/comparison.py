"""A comparison as answers, which the renderers of any run's page print."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite, log
from pathlib import Path
from typing import ClassVar

from ...harness.stats.intervals import Interval
from ..comparison.compare import Comparison, Side
from ..comparison.sentences import (
    clipped,
    count_texts,
    doubts,
    gate_text,
    lines,
    mean_text,
    verdict_text,
)
from ..comparison.verdict import SAME, CaseVerdict, value_of
from ..data.exactness import exactness_note
from ..data.load import rows_of
from ..data.processor_time import disturbed
from ..data.row_groups import Row, by, case_key, first_copies, label, problem
from ..data.run_meta import run_meta, scenario_name
from ..deciding import what_decides_ratios
from ..elements import Card, Dot, DotPlot, DotRow, Marked, Table, table_of
from ..formatting import Number, paragraph, plural, time_text
from ..judging.ratio import Ratio
from ..quantity import Cell, Quantity
from ..subjects import SECTIONS, name_of
from ..words import NOISY, NOT_DECIDED, SEEN, TIMES, meaning_of
from .report import MORE, TRUST, Answered, Section
from .run_titles import marked_names

NAME, TITLE = "comparison", "Case by case"
MOST_ROWS = 100
"""Of the table; JSON has all. GitHub drops summaries of more than 1024 KiB; this is far less."""
MOST_DOTS = 40
KEPT = ("environment", "rows")
"""What is shown on demand of the runs, as on their own pages."""
Verdicts = Sequence[CaseVerdict]
"""All verdicts on a case."""


def page(found: Comparison) -> "ComparisonReport":
    meta = run_meta(found.runs)
    if found.rules.turns or found.rules.history:  # the sides' rows stand for several runs
        rows = rows_of(found.runs)
    else:
        rows = [*{id(row): row for side in (found.base, found.new) for row in side.rows}.values()]
    rows = [*first_copies(rows)]
    names = marked_names(rows, meta)
    return ComparisonReport(runs=found.runs, rows=rows, meta=meta, names=names, found=found)


@dataclass(frozen=True, kw_only=True)
class ComparisonReport(Answered):
    """A report of the runs with the comparison in place of their answers."""

    MADE_BY: ClassVar = "compare"
    AVERAGED: ClassVar = "Only the mean ratios average over problems"
    found: Comparison

    @property
    def heading(self) -> str:
        """`quickstart: 28 Nov against 24 Nov`."""
        scenarios = {scenario_name(run) for run in self.meta.values()}
        scenario = f"{scenarios.pop()}: " if len(scenarios) == 1 else ""
        new, base = self._title(self.found.new), self._title(self.found.base)
        if self.found.rules.baseline is not None:
            new, base = "every backend", self.found.rules.baseline
        elif self.found.base is self.found.new:
            new, base = "a run", "itself"
        return f"{scenario}{clipped(new)} against {clipped(base)}"

    @property
    def headers(self) -> Mapping[str, tuple[str, str]]:
        abouts = dict(zip(self._paths, super().headers.values(), strict=True))
        if self.found.rules.baseline is not None:
            return {"": abouts[self.found.new.path]}
        return {
            name: (f"{name} ({self._title(side)})", abouts[side.path][1])
            for name, side in (("new", self.found.new), ("base", self.found.base))
        }

    @property
    def _paths(self) -> list[Path]:
        return [run.path for run in self.runs]

    def _title(self, side: Side) -> str:
        titles = dict(zip(self._paths, self.titles.values(), strict=True))
        names = [titles[run.path] for run in side.runs]
        return names[0] if len(names) == 1 else f"{len(names)} runs, {names[0]} to {names[-1]}"

    @cached_property
    def answer(self) -> str:
        """What the gate says, and how many times changed."""
        gate = [gate_text(self.found.gate_result)] if self.found.gate_result else []
        return self._called(" ".join([*gate, *self._counts[:1]]))

    @cached_property
    def _counts(self) -> list[str]:
        mean = self.found.means.get("")
        first, *others = [*count_texts(self.found), ""]
        return [paragraph(first, mean_text(mean) if mean else ""), *others]

    @cached_property
    def cards(self) -> Sequence[Card]:
        cases = by_case(self.found.verdicts)
        axes, baseline = self.found.axes, self.found.rules.baseline
        sides = ("base", "new") if baseline is None else (clipped(baseline), "this")
        against = "new over base" if baseline is None else f"to {sides[0]}"
        marks = {one.mark for one in self.found.verdicts if one.mark in (SEEN, NOISY)}
        table = case_table(cases[:MOST_ROWS], axes, sides)
        card = Card(
            name=NAME,
            title=TITLE,
            section=NAME,
            subtitle=f"ratios {against}",
            sentence=paragraph(*self._counts[1:]),
            sure=paragraph(meaning_of(marks), self._what_decides, *doubts(self.found)),
            picture=_dots(cases, axes, against, table) or table,
            decisions=_by_backend(self.found),
        )
        return self._called((card,))

    @property
    def notes(self) -> list[str]:
        """Its lines have them."""
        return []

    @property
    def _what_decides(self) -> str:
        """Of the cases of one run: which plan would decide what is open. No plan makes two stored
        runs alike; hints of reasons say what helps there.
        """
        if self.found.rules.baseline is None:
            return ""
        ratios = [one.ratio for one in self.found.of("latency") if one.ratio]
        return what_decides_ratios(ratios, [*self.found.new.rows], {"": self.found.new.meta})

    @property
    def lines(self) -> list[str]:
        more = len(by_case(self.found.verdicts)) - MOST_ROWS
        left_out = f"{plural(more, 'more case')} left out, the last ones; --format json has all."
        every = [*([left_out] if more > 0 else []), *lines(self.found)]
        return [*self._called(tuple(every))]

    @cached_property
    def answered(self) -> Mapping[str, Section]:
        found = Section(name=NAME, title=TITLE, cards=self.cards, lines=self.lines)
        return {NAME: found}

    @cached_property
    def sections(self) -> Sequence[Section]:
        parts = [self.part(one) for one in self.subjects if name_of(one) in KEPT]
        return [
            *self.answered.values(),
            Section(name=TRUST, title=SECTIONS[TRUST], trust=self.trust),
            Section(name=MORE, title=SECTIONS[MORE], parts=parts),
        ]


def by_case(verdicts: Sequence[CaseVerdict]) -> list[Verdicts]:
    """All verdicts on each case, those cases first of which most is decided."""
    found = by(verdicts, lambda one: (id(one.base), id(one.new)))
    return sorted(found.values(), key=lambda some: min(map(_severity, some)))


def _severity(found: CaseVerdict) -> tuple[int, bool, float]:
    """A sort key: worse, better, the same, not decided, failed on both sides; of each first times
    and how cases ended, the largest change first.
    """
    rank = 0 if found.worse else 1 if found.better else 3 if found.verdict == NOT_DECIDED else 2
    rank = 4 if found.metric == "status" and rank == 2 else rank
    value = found.ratio.value if found.ratio else inf
    change = abs(log(value)) if isfinite(value) and value > 0 else inf
    return rank, found.metric not in ("latency", "status"), -change


def case_table(cases: Sequence[Verdicts], axes: Sequence[str], sides: tuple[str, str]) -> Table:
    """A row per case. `sides`: what base and new are called."""

    def judged(*metrics: str) -> Callable[[Verdicts], Marked | str]:
        def cell(some: Verdicts) -> Marked | str:
            one = next((one for one in some if one.metric in metrics), None)
            if one is None:
                return ""
            return Marked(cell=verdict_text(one, sides), strong=one.better, failed=one.worse)

        return cell

    return table_of(
        "",
        cases,
        {
            "backend": lambda some: _backend(some[0].shown),
            "problem": lambda some: label(problem(some[0].shown), axes),
            sides[0]: lambda some: _time(some[0].base),
            sides[1]: lambda some: _time(some[0].new),
            "time": judged("latency", "status"),
            "peak memory": judged("peak_bytes"),
            "energy": judged("energy_per_call"),
        },
        case=lambda some: case_key(some[0].shown),
        optional=("problem", *sides, "peak memory", "energy"),
    )


def _by_backend(found: Comparison) -> Table | None:
    """How many times changed, and the mean ratio; None of a single backend."""
    some = by(found.of("latency"), lambda one: clipped(one.shown["backend"]))
    words = {"slower": "slower", "faster": "faster", SAME: SAME, "not confirmed": NOT_DECIDED}

    def count(word: str) -> Callable[[str], Cell]:
        return lambda name: sum(one.verdict == word for one in some[name]) or ""

    columns: dict[str, Callable[[str], Cell]] = {"time by backend": str}
    columns |= {title: count(word) for title, word in words.items()}
    columns["geometric mean"] = lambda name: _mean(found.means.get(name))
    return table_of("", some, columns, optional=(*words,)) if len(some) > 1 else None


def _mean(mean: Interval | None) -> Cell:
    return "" if mean is None else f"×{Quantity.of(mean, 'ratio')}"


def _backend(row: Row) -> str:
    name, note = clipped(row["backend"]), exactness_note(row)
    return f"{name} ({note})" if note else name


def _time(row: Row | None) -> Cell:
    value = value_of(row, "latency") if row and row["status"] == "ok" else None
    if row is None or value is None:
        return ""
    used_ms = row.get("processor_ms") if disturbed(row) else None  # as processor_time.time_of
    return Number(time_text(value) + (f", processor {time_text(used_ms)}" if used_ms else ""))


def _dots(
    cases: Sequence[Verdicts], axes: Sequence[str], against: str, table: Table
) -> DotPlot | None:
    """The ratios of times, if there are not too many for a picture."""

    def dot(ratio: Ratio) -> Dot:
        found = Dot.of(ratio.value, ratio.low, ratio.high, ratio.word, ratio.mark)
        return replace(found, called=TIMES.get(ratio.word, ""))

    every = [one for some in cases for one in some if one.metric == "latency" and one.mark]
    rows = [
        DotRow(group=name, label=label(problem(one.shown), axes), dot=dot(one.ratio))
        for name, some in by(every, lambda one: clipped(one.shown["backend"])).items()
        for one in some
        if one.ratio
    ]
    if not 0 < len(rows) <= MOST_DOTS:
        return None
    band = max(one.ratio.margin_ratio for one in every if one.ratio)
    return DotPlot(rows=tuple(rows), x_label=f"time, {against}", band_ratio=band, table=table)
