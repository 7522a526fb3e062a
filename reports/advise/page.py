"""Advice as one offline page: the answer, memory over the context, times, tables and commands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from ...harness.files.printable import spaced
from ..data.load import rows_of
from ..data.run_meta import run_meta
from ..elements import (
    Card,
    Dot,
    DotPlot,
    DotRow,
    Figure,
    Panel,
    Series,
    Table,
    Text,
    table_of,
)
from ..formatting import bytes_text, list_text, size_text, time_text
from ..pages.html import render as page_of
from ..pages.report import MORE, TRUST, Answered, Part, Section
from ..pages.run_titles import marked_names
from ..subjects import SECTIONS, name_of
from ..words import NOT_DECIDED, SAME_RATIO, SEEN, TIMES, Word
from .answer import Advice
from .asked import Phase
from .memory import MOST_CONTEXT
from .tables import CACHE, CHOICE, Columns, Of, blocks, longest_table, question, verdict
from .words import about, headline, place, run_commands

KEPT = ("environment", "rows")  # sections of an ordinary report that stay on this page
WEIGHTS = "weights"
NOTE = "Bars are 95 % intervals of the time in all layers over that of the fastest."
DRAWN_PARTS = 16  # of the longest context: curves look smooth
SHOWN_PHASE: Phase = "prefill"  # the picture's: it needs most


def render(advice: Advice) -> str:
    """The page as text; the same rows give the same bytes."""
    runs = advice.runs
    rows, meta = rows_of(runs), run_meta(runs)
    own = {one.name: one.name for one in advice.inquiry.implementations}
    names = {**own, **marked_names(rows, meta)}
    return page_of(AdviceReport(runs=runs, rows=rows, meta=meta, names=names, advice=advice))


@dataclass(frozen=True, kw_only=True)
class AdviceReport(Answered):
    """A report of the runs that the advice's rows are from, with its answers in place of theirs."""

    MADE_BY: ClassVar = "advise"
    advice: Advice

    @property
    def heading(self) -> str:
        return f"Attention for {self.advice.inquiry.model}"

    @property
    def headers(self) -> Mapping[str, tuple[str, str]]:
        return {"": ("", about(self.advice))}

    @cached_property
    def cards(self) -> Sequence[Card]:
        """Which one, and what fits."""
        advice, picture = self.advice, _ratios(self.advice)
        return [
            Card(
                name="answer",
                title="Which attention",
                sentence="",
                picture=picture,
                subtitle="time in all layers",
                decisions=_advised(advice),
                note=NOTE,
            ),
            Card(
                name="memory",
                title="How long a context fits",
                sentence="",
                picture=_bytes_over_context(advice),
                subtitle=place(advice, "in").strip(),
                decisions=longest_table(advice, sources=False) if advice.longest else None,
                note=f"Grey: {_named_below(advice)}; above it one layer's attention.",
            ),
        ]

    @cached_property
    def answer(self) -> str:
        return headline(self.advice)

    @cached_property
    def sections(self) -> Sequence[Section]:
        """What fits, how fast each is, and the rest."""
        fast, fits = self.cards
        shown = [fast] if fast.picture is not None else []
        kept = [one for one in self.subjects if name_of(one) in KEPT] if self.meta else []
        trusted = [one for one in super().sections if one.name == TRUST] if self.meta else []
        again = Text(text="\n".join(run_commands(self.advice)), kind="log")
        parts = [
            Part(name="advise.details", title="Details", blocks=[*blocks(self.advice)]),
            Part(name="advise.commands", title="Commands that measure it again", blocks=[again]),
            *map(self.part, kept),
        ]
        return [
            Section(name="memory", title=SECTIONS["memory"], cards=[fits]),
            *([Section(name="time", title=SECTIONS["time"], cards=shown)] if shown else []),
            *(replace(one, parts=()) for one in trusted),
            Section(name=MORE, title=SECTIONS[MORE], parts=parts),
        ]


def _advised(advice: Advice) -> Table | None:
    """What to use for each question, with its time and peak memory."""
    some = [(of, one) for of in advice.decisions if (one := of.chosen) is not None]
    columns: Columns = {
        "for": lambda of: question(of[0]),
        "use": CHOICE["attn_implementation"],
        "time": lambda of: time_text(of[1].total_ms.value if of[1].total_ms else None),
        "peak memory": CHOICE["peak memory"],
    }
    return table_of("", some, columns) if some else None


def _ratios(advice: Advice) -> DotPlot | None:
    """Every implementation against the fastest; None if nothing is measured."""
    asked = [(of, one) for of in advice.decisions if of.best is not None for one in of.choices]
    if not asked:
        return None
    columns: Columns = {"question": lambda of: question(of[0]), **CHOICE}
    return DotPlot(
        rows=tuple(map(_dot_row, asked)),
        x_label="time against the fastest",
        band_ratio=SAME_RATIO,
        table=table_of("Time against the fastest", asked, columns, optional=("reads",)),
    )


def _dot_row(of: Of) -> DotRow:
    against, name = of[1].against, of[1].implementation.name
    if against is None:
        missing = verdict(of) or of[1].why_not.replace(";", ":").split(":")[0]
        return DotRow(group=question(of[0]), label=name, dot=None, missing=missing)
    faster = against.word == "less"
    word: Word = NOT_DECIDED if faster else against.word
    dot = Dot.of(against.value, against.low, against.high, word, SEEN if faster else against.mark)
    dot = replace(dot, called=TIMES.get(word, ""))
    return DotRow(group=question(of[0]), label=name, dot=dot)


def _named_below(advice: Advice) -> str:
    """What every implementation's line stands on."""
    return list_text([WEIGHTS, CACHE] if advice.inquiry.weight_bytes is not None else [CACHE])


def _bytes_over_context(advice: Advice) -> Figure | None:
    """Weights, keys and values, and all with one layer's attention, over the context."""
    asked = advice.inquiry
    if SHOWN_PHASE not in asked.phases or not asked.shapes.asked(SHOWN_PHASE, 1):
        return None
    stops = [one.context or 0 for one in advice.longest if one.phase == SHOWN_PHASE]
    contexts = contexts_to_draw(stops, asked.contexts, asked.most_context)
    lines: dict[str, list[int | None]] = {}
    if asked.weight_bytes is not None:
        lines[WEIGHTS] = [asked.weight_bytes] * len(contexts)
    caches = [asked.shapes.cache_bytes(n) for n in contexts]
    lines[_named_below(advice)] = [(asked.weight_bytes or 0) + one for one in caches]
    for one in asked.implementations:
        totals = [advice.memory.need(one, SHOWN_PHASE, n).total_bytes for n in contexts]
        lines |= {one.name: totals} if any(totals) else {}
    budget = asked.memory_bytes
    panel = Panel(
        x_label="context, tokens",
        y_label="memory",
        unit="bytes",
        x_scale="linear",
        y_scale="linear",
        series=tuple(
            Series(backend=name, kind="formula", x=tuple(map(float, contexts)), y=tuple(values))
            for name, values in lines.items()
        ),
        line=None if budget is None else (float(budget), size_text(budget)),
    )
    return Figure(
        title="Memory over the context",
        caption=f"{_named_below(advice)}; with the attention of one layer by each implementation",
        panels=(panel,),
        table=Table(
            title="Memory over the context",
            columns=("context", *lines),
            rows=tuple(
                (spaced(n), *map(bytes_text, line))
                for n, *line in zip(contexts, *lines.values(), strict=True)
            ),
            folded=True,
        ),
    )


def contexts_to_draw(longest: Sequence[int], asked: Sequence[int], most: int | None) -> list[int]:
    """Up to twice what was asked and what fits, and those themselves."""
    ends = [one for one in (*longest, *asked) if one]
    far = min(2 * max(ends), most or MOST_CONTEXT)
    parts = (far * part // DRAWN_PARTS for part in range(1, DRAWN_PARTS + 1))
    return sorted({max(1, one) for one in (*parts, *ends) if one <= far})
