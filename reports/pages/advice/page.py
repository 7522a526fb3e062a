"""Advice as one offline page: the answer, memory over the context, layers, commands, rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import Literal, cast

import pandas as pd

from ...advice.answer import Advice
from ...advice.asked import Phase
from ...advice.choices import Choice
from ...advice.memory import Need, contexts_to_draw
from ...comparison.verdict import DEFAULT_MARGIN
from ...data.load import frame
from ...data.run_meta import Meta, run_meta
from ...elements import (
    Block,
    Card,
    Dot,
    DotPlot,
    DotRow,
    Figure,
    Panel,
    Series,
    Table,
    Text,
    note,
)
from ...formatting import (
    bytes_text,
    count_text,
    list_text,
    number_text,
    ratio_range_text,
    size_text,
)
from ...sections import Section
from ..exactness_marks import marked_names
from ..html import render as page_of
from ..report import Part, Report
from .sentences import (
    beside_tables,
    decision_sentence,
    first_words,
    headline,
    longest_sentence,
    room_text,
    run_commands,
    times_of_best,
)
from .tables import about, choice_tables, layer_table, longest_table, memory_table

KEPT = ("method", "environment", "rows")  # sections of an ordinary report that stay on this page
WEIGHTS, CACHE = "weights", "keys and values"
WORDS: dict[str, Literal["same", "more", "less", "undecided"]] = {
    "slower": "more",
    "same": "same",
    "faster": "undecided",
    "undecided": "undecided",
}
NOTE = "Bands are 95 % intervals of the ratio over all layers; undecided: 1 is within reach."
SHOWN_PHASE: Phase = "prefill"  # the picture's: it needs most


def render(advice: Advice) -> str:
    """The page as text; the same rows give the same bytes."""
    runs = advice.runs
    table, meta = frame(runs), run_meta(runs)
    own = {one.backend: one.backend for one in advice.inquiry.implementations}
    names = {**own, **marked_names(table, meta)}
    return page_of(AdviceReport(runs=runs, frame=table, meta=meta, names=names, advice=advice))


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSection:
    """A section of this page only."""

    __name__: str
    TITLE: str
    blocks: tuple[Block, ...]
    ORDER: int = 0
    NEEDS: tuple[str, ...] = ()

    def render(self, frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
        yield from self.blocks


@dataclass(frozen=True, kw_only=True)
class AdviceReport(Report):
    """A report of the runs that the advice's rows are from, with its answers in place of theirs."""

    advice: Advice

    @property
    def heading(self) -> str:
        return f"Attention for {self.advice.inquiry.model}"

    @property
    def questions(self) -> list[str]:
        return [about(self.advice)]

    @cached_property
    def cards(self) -> Sequence[Card]:
        """Which one, and what fits."""
        return [_which(self.advice), _fits(self.advice)]

    @property
    def answered(self) -> list[Part]:
        kept = [part for part in super().answered if part.name in KEPT] if self.meta else []
        return [*_own_parts(self.advice), *kept]

    @property
    def lacking(self) -> list[Part]:
        return []


# ---- the answers ---------------------------------------------------------------------------------


def _which(advice: Advice) -> Card:
    return Card(
        name="answer",
        title="Which attention",
        sentence=headline(advice),
        picture=_ratios(advice),
        subtitle="time in all layers",
        note=f"{times_of_best(advice)} {NOTE}" if advice.recommended else "",
    )


def _fits(advice: Advice) -> Card:
    known = [one for one in advice.longest if one.phase == SHOWN_PHASE]
    sentence = longest_sentence(known)
    return Card(
        name="memory",
        title="How long a context fits",
        sentence=sentence,
        picture=memory_figure(advice),
        subtitle=room_text(advice, SHOWN_PHASE),
        note=f"Grey: {named_below(advice)}; above it one layer's attention.",
    )


def named_below(advice: Advice) -> str:
    """What every implementation's line stands on."""
    return list_text([WEIGHTS, CACHE] if advice.inquiry.weight_bytes is not None else [CACHE])


def _ratios(advice: Advice) -> DotPlot | None:
    """Every implementation against the fastest; None if nothing is measured."""
    rows = [
        _dot_row(f"{decision.phase} {count_text(decision.context)}", one, decision.word_of_best)
        for decision in advice.decisions
        if decision.best is not None
        for one in decision.choices
    ]
    if not rows:
        return None
    return DotPlot(
        rows=tuple(rows),
        x_label="time against the fastest",
        band_ratio=DEFAULT_MARGIN["latency"],
        description=" ".join(map(decision_sentence, advice.decisions)),
        table=replace(
            next(choice_tables(advice)),
            title="Time against the fastest",
            columns=("question", "implementation", "ratio", "verdict"),
            rows=tuple(_numbers_of(row) for row in rows),
            strong=frozenset(),
            failed=frozenset(),
        ),
    )


def _dot_row(group: str, one: Choice, best: str) -> DotRow:
    backend = one.implementation.backend
    if one.total_ms is None:
        return DotRow(group=group, label=backend, dot=None, missing=first_words(one.why_not))
    if one.against is None:
        return DotRow(group=group, label=backend, dot=None, missing=best)
    against = one.against
    dot = Dot(
        ratio=against.ratio,
        low=against.low if isfinite(against.low) else None,
        high=against.high if isfinite(against.high) else None,
        word=WORDS[against.verdict],
    )
    return DotRow(group=group, label=backend, dot=dot)


def _numbers_of(row: DotRow) -> tuple[str, ...]:
    if row.dot is None:
        return row.group, row.label, "", row.missing
    ratio = f"{number_text(row.dot.ratio)}{ratio_range_text(row.dot.low, row.dot.high)}"
    return row.group, row.label, ratio, row.dot.word


# ---- the sections --------------------------------------------------------------------------------


def _own_parts(advice: Advice) -> Iterator[Part]:
    choices = tuple(choice_tables(advice)) or (note("Nothing is measured yet."),)
    bytes_ = tuple(one for one in (longest_table(advice), memory_table(advice)) if one is not None)
    layers = layer_table(advice)
    sections: list[tuple[str, str, tuple[Block, ...]]] = [
        ("choices", "Which implementation", choices),
        ("memory", "What fits", bytes_),
        ("layers", "Kinds of layers", () if layers is None else (layers,)),
        ("known", "What is known, and what is not", tuple(_said(advice))),
        ("commands", "Commands that measure it again", tuple(_commands(advice))),
    ]
    for name, title, blocks in sections:
        if blocks:
            section = OwnSection(__name__=f"advice.{name}", TITLE=title, blocks=blocks)
            yield Part(section=cast(Section, section), blocks=blocks)


def _said(advice: Advice) -> Iterator[Block]:
    for sentence in beside_tables(advice):
        yield Text(text=sentence)


def _commands(advice: Advice) -> Iterator[Block]:
    if commands := "\n".join(run_commands(advice)):
        yield Text(text=commands, kind="log")


# ---- the picture ---------------------------------------------------------------------------------


def memory_figure(advice: Advice) -> Figure | None:
    """Weights, keys and values, and all with one layer's attention, over the context."""
    asked = advice.inquiry
    if SHOWN_PHASE not in asked.phases or not asked.shapes.asked(SHOWN_PHASE, 1):
        return None
    stops = [one.context or 0 for one in advice.longest if one.phase == SHOWN_PHASE]
    contexts = contexts_to_draw(stops, asked.contexts, asked.most_context)
    needs = {
        one.backend: [advice.memory.need(one, SHOWN_PHASE, n) for n in contexts]
        for one in asked.implementations
    }
    known = {
        backend: found
        for backend, found in needs.items()
        if any(need.total is not None for need in found)
    }
    any_needs = next(iter(needs.values()))
    series = [_series(CACHE, contexts, [(n.weights or 0) + n.cache for n in any_needs])]
    if asked.weight_bytes is not None:
        series.insert(0, _series(WEIGHTS, contexts, [asked.weight_bytes] * len(contexts)))
    series += [
        _series(backend, contexts, [need.total for need in found])
        for backend, found in known.items()
    ]
    budget = asked.memory_bytes
    panel = Panel(
        x_label="context, tokens",
        y_label="bytes",
        unit="bytes",
        series=tuple(series),
        line=None if budget is None else (float(budget), size_text(budget)),
    )
    named = named_below(advice)
    return Figure(
        title="Memory over the context",
        caption=f"{named}; with the attention of one layer by each implementation",
        description=(
            f"Bytes over the context for {asked.model}: {named}, and in all with each"
            " implementation's attention of one layer."
        ),
        panels=(panel,),
        table=_numbers(contexts, any_needs, known),
        low=True,
    )


def _series(name: str, contexts: Sequence[int], values: Sequence[int | None]) -> Series:
    return Series(
        backend=name,
        kind="formula",
        x=tuple(map(float, contexts)),
        y=tuple(None if value is None else float(value) for value in values),
    )


def _numbers(
    contexts: Sequence[int], any_needs: Sequence[Need], known: dict[str, list[Need]]
) -> Table:
    rows = [
        (
            f"{n:,}",
            bytes_text(need.cache),
            *(bytes_text(found[place].total) for found in known.values()),
        )
        for place, (n, need) in enumerate(zip(contexts, any_needs, strict=True))
    ]
    return Table(
        title="Memory over the context",
        columns=("context", CACHE, *(f"in all, {backend}" for backend in known)),
        rows=tuple(rows),
        folded=True,
    )
