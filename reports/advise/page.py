"""Advice as one offline page: the answer, memory over the context, layers, commands, rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ...harness.files.printable import spaced
from ..data.load import rows_of
from ..data.run_meta import run_meta
from ..elements import Card, Dot, DotPlot, DotRow, Figure, Panel, Series, Table, Text, table_of
from ..formatting import bytes_text, list_text, size_text
from ..pages.exactness_marks import marked_names
from ..pages.html import render as page_of
from ..pages.report import MORE, TRUST, Answered, Part, Section
from ..subjects import SECTIONS, name_of
from ..words import NOT_DECIDED, SAME_RATIO, SEEN, TIMES, Word
from .answer import Advice
from .asked import Phase
from .choices import Choice
from .memory import contexts_to_draw
from .sentences import about, headline, longest_sentence, room_text, run_commands, use
from .tables import CHOICE, blocks, layer_table, question

KEPT = ("environment", "rows")  # sections of an ordinary report that stay on this page
WEIGHTS, CACHE = "weights", "keys and values"
NOTE = (
    "Bands are 95 % intervals of the ratio over all layers; not confirmed or too noisy: neither"
    " beyond nor within the grey band."
)
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
        return [_which(self.advice), _fits(self.advice)]

    @cached_property
    def answer(self) -> str:
        return headline(self.advice)

    @cached_property
    def sections(self) -> Sequence[Section]:
        """What fits, how fast each is, and the rest."""
        fast, fits = self.cards
        shown = [self._unsaid(fast)] if fast.picture is not None else []
        kept = [one for one in self.subjects if name_of(one) in KEPT] if self.meta else []
        trusted = [one for one in super().sections if one.name == TRUST] if self.meta else []
        rest = [*_own_parts(self.advice), *map(self.part, kept)]
        return [
            Section(name="memory", title=SECTIONS["memory"], cards=[fits]),
            *([Section(name="time", title=SECTIONS["time"], cards=shown)] if shown else []),
            *(replace(one, parts=()) for one in trusted),
            Section(name=MORE, title=SECTIONS[MORE], parts=rest),
        ]


def _own_parts(advice: Advice) -> Iterator[Part]:
    details = [*blocks(advice), *filter(None, [layer_table(advice)])]
    yield Part(name="advise.details", title="Details", blocks=details)
    commands = Text(text="\n".join(run_commands(advice)), kind="log")
    title = "Commands that measure it again"
    yield Part(name="advise.commands", title=title, blocks=[commands])


def _which(advice: Advice) -> Card:
    picture = _ratios(advice)
    return Card(
        name="answer",
        title="Which attention",
        sentence=use(advice),
        picture=picture,
        wide=picture is None,
        subtitle="time in all layers",
        note=NOTE if advice.recommended else "",
    )


def _fits(advice: Advice) -> Card:
    known = [one for one in advice.longest if one.phase == SHOWN_PHASE]
    return Card(
        name="memory",
        title="How long a context fits",
        sentence=longest_sentence(known),
        picture=_memory(advice),
        subtitle=room_text(advice, SHOWN_PHASE),
        note=f"Grey: {_named_below(advice)}; above it one layer's attention.",
    )


def _ratios(advice: Advice) -> DotPlot | None:
    """Every implementation against the fastest; None if nothing is measured."""
    asked = [
        (decision, one)
        for decision in advice.decisions
        if decision.best is not None
        for one in decision.choices
    ]
    if not asked:
        return None
    return DotPlot(
        rows=tuple(_dot_row(question(of), one, of.word_of_best) for of, one in asked),
        x_label="time against the fastest",
        band_ratio=SAME_RATIO,
        table=table_of(
            "Time against the fastest", asked, {"question": lambda of: question(of[0]), **CHOICE}
        ),
    )


def _dot_row(group: str, one: Choice, best: str) -> DotRow:
    name, against = one.implementation.name, one.against
    if one.total_ms is None or against is None:
        missing = best if one.total_ms is not None else one.why_not.replace(";", ":").split(":")[0]
        return DotRow(group=group, label=name, dot=None, missing=missing)
    word: Word = NOT_DECIDED if against.word == "less" else against.word
    sure = SEEN if against.word == "less" else against.mark
    dot = Dot.of(against.value, against.low, against.high, word, sure)
    dot = replace(dot, called=TIMES.get(word, ""))
    return DotRow(group=group, label=name, dot=dot)


def _named_below(advice: Advice) -> str:
    """What every implementation's line stands on."""
    return list_text([WEIGHTS, CACHE] if advice.inquiry.weight_bytes is not None else [CACHE])


def _memory(advice: Advice) -> Figure | None:
    """Weights, keys and values, and all with one layer's attention, over the context."""
    asked = advice.inquiry
    if SHOWN_PHASE not in asked.phases or not asked.shapes.asked(SHOWN_PHASE, 1):
        return None
    stops = [one.context or 0 for one in advice.longest if one.phase == SHOWN_PHASE]
    contexts = contexts_to_draw(stops, asked.contexts, asked.most_context)
    needs = {
        one.name: [advice.memory.need(one, SHOWN_PHASE, n) for n in contexts]
        for one in asked.implementations
    }
    any_needs = next(iter(needs.values()))
    cache: list[int | None] = [(one.weight_bytes or 0) + one.cache_bytes for one in any_needs]
    weights: dict[str, list[int | None]] = {WEIGHTS: [asked.weight_bytes] * len(contexts)}
    lines = {**(weights if asked.weight_bytes is not None else {}), CACHE: cache}
    totals = {one: [need.total_bytes for need in found] for one, found in needs.items()}
    totals = {one: found for one, found in totals.items() if any(found)}
    budget = asked.memory_bytes
    named = f"{_named_below(advice)}; with the attention of one layer by each implementation"
    series = (
        Series(backend=name, kind="formula", x=tuple(map(float, contexts)), y=tuple(values))
        for name, values in (lines | totals).items()
    )
    columns: dict[str, list[int | None]] = {CACHE: [need.cache_bytes for need in any_needs]}
    columns |= {f"in all, {one}": found for one, found in totals.items()}
    return Figure(
        title="Memory over the context",
        caption=named,
        panels=(
            Panel(
                x_label="context, tokens",
                y_label="memory",
                unit="bytes",
                series=tuple(series),
                line=None if budget is None else (float(budget), size_text(budget)),
            ),
        ),
        table=Table(
            title="Memory over the context",
            columns=("context", *columns),
            rows=tuple(
                (spaced(n), *map(bytes_text, line))
                for n, *line in zip(contexts, *columns.values(), strict=True)
            ),
            folded=True,
        ),
    )
