"""A report in the terminal: the answers first, sentences as lines, tables by rich."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from rich.console import RenderableType
from rich.markup import escape

from ..data.run_meta import unanswered_texts
from ..elements import Bars, DotPlot, Table, Text
from ..formatting import list_text
from ..subjects import name_of, tellers
from ..subjects._memory_over_n import wall_groups
from ..subjects.utilization import NOT_MEASURED
from ..subjects.wall import walls
from .report import COSTS, Part, Report, told
from .run_titles import marked
from .terminal_table import MOST_ROWS, grid, render_block, safe

SHORT_SENTENCE = 30  # characters
MOST_OF_ALL = 8  # rows of a table among all sections
MOST_OTHERS, MOST_BESIDE = 4, 2  # sentences, with nothing to choose from, and beside a choice


BUSY = "utilization"
STUDIES = "studies"
MOST_FINDINGS = 12


def section_names() -> list[str]:
    return [name_of(one) for one in tellers()]


def render(report: Report, names: Iterable[str], *, whole: bool = True) -> Iterator[RenderableType]:
    """The named subjects, in the page's order. With the summary come the answers. Without `whole`
    long tables are only named, and those that the page folds.
    """
    requested = set(names)
    with_answers = "trust" in requested
    if with_answers:
        yield from answers(report)
    for one in report.subjects:
        if name_of(one) in requested:
            part = report.part(one, alone=not with_answers)
            if part.blocks and (part.has_data or not with_answers):
                yield from _section(part, "" if whole else f"with --sections {name_of(one)}")


def render_briefly(report: Report) -> Iterator[RenderableType]:
    """Half a screen: the answer, how sure, the regret of each backend in short, and what else was
    asked; then, in a line, how far to trust it.
    """
    yield safe(report.title)
    yield from _headers(report)
    yield from _answer(report, report.certainty, report.regret)
    yield from map(safe, _others(report))
    yield from _findings(report)
    yield from _trust_line(report)


def _others(report: Report) -> list[str]:
    """What else was asked, in short; all there is, with nothing to choose from."""
    alone = report.regret is None
    every = report.answered.values()
    some = [one for one in every if alone or one.name == "asked"]
    cards = [card for one in some for card in one.cards if card.sentence and card.name != BUSY]
    found = [
        f"{card.title}: {card.sentence if card.name in COSTS else _clause(card.sentence)}"
        for card in cards
    ]
    found += [_clause(line) for one in some for line in one.lines]
    found = [line for line in found if not line.startswith(NOT_MEASURED)]
    most = MOST_OTHERS if alone else MOST_BESIDE
    if len(found) > most:
        found[most - 1] += f" {len(found) - most} more of these with --all."
    busy = [card for one in every for card in one.cards if card.name == BUSY]
    said = [f"{card.title}: {card.sentence}" for card in busy if card.sentence]
    return [*found[:most], *said, *(one for one in report.lines if one.startswith(NOT_MEASURED))]


def _findings(report: Report) -> Iterator[RenderableType]:
    """The first findings of a run of studies alone."""
    for card in (card for one in report.answered.values() for card in one.cards):
        if card.name == STUDIES and card.picture is not None:
            table = card.picture.table
            yield grid(replace(table, rows=table.rows[:MOST_FINDINGS]))
            if (left := len(table.rows) - MOST_FINDINGS) > 0:
                yield f"{left} more with --all."


def _trust_line(report: Report) -> Iterator[str]:
    """`Trust: right, undisturbed and complete. Repeated: ...`, what is amiss in yellow."""
    good = [one.label.lower() for one in report.trust if one.state == "good"]
    texts = [f"Trust: {list_text(good)}."] if good else []
    for one in report.trust:
        if one.state == "caution" and not (one.label == "Complete" and report.stopped):
            text = f"{one.label}: {_clause(one.text, '.:')}"
            texts.append(f"[yellow]{safe(text)}[/]")
    if texts:
        yield " ".join(texts)


def _clause(text: str, ends: str = ".;:") -> str:
    """A text without what is in brackets, up to the first of these ends that comes after more than
    a few words such as `Same FLOPs.`, and after the place of `At N = 512, h = 1: sdpa takes 1 ms.`
    """
    bare = re.sub(r" \([^()]*\)", "", text)
    place = re.match("At [^:;.]*: ", bare)
    start = max(SHORT_SENTENCE, place.end() if place else 0)
    end = re.compile(f"[{ends}] ").search(bare, start)
    return f"{bare[: end.start()]}." if end else bare


def _section(part: Part, elsewhere: str = "") -> Iterator[RenderableType]:
    """`elsewhere`: where long tables are."""
    yield f"\n[bold]{escape(part.title)}[/]"
    for block in part.blocks:
        folded = isinstance(block, Table) and block.folded
        rows = 0 if isinstance(block, Text) else len(block.table.rows)
        if elsewhere and (folded or rows > MOST_OF_ALL):
            yield from render_block(block, elsewhere)
        else:
            is_long = folded and rows > MOST_ROWS
            yield from render_block(block, "in the report" if is_long else "")


def answers(report: Report) -> Iterator[RenderableType]:
    """The question, the answer, the other answers with the tables of their pictures, and lines."""
    yield f"[bold]{safe(report.heading)}[/]"
    yield from _headers(report)
    yield from map(safe, report.questions)
    yield from _answer(report, report.certainty, report.regret)
    for section in report.answered.values():
        for card in section.cards:
            subtitle = f" [dim]{safe(card.subtitle)}[/]" if card.subtitle else ""
            yield f"\n[bold]{safe(card.title)}[/]{subtitle}"
            yield from map(safe, filter(None, (card.sentence, card.sure)))
            if card.decisions is not None and isinstance(card.picture, Bars | DotPlot):
                yield grid(card.picture.table)
            if (picture := card.decisions or card.picture) is not None:
                yield grid(picture.table)
    lines = report.lines
    yield from ("" for _ in lines[:1])
    yield from map(safe, lines)


def _answer(report: Report, sure: str, regret: Table | None) -> Iterator[RenderableType]:
    yield from (f"[yellow]{safe(one)}[/]" for one in report.stopped)
    if report.answer:
        yield f"[bold]{safe(report.answer)}[/]"
    if sure:
        yield safe(sure)
    if regret is not None:
        yield grid(regret)


def _headers(report: Report) -> Iterator[str]:
    for header in report.headers.values():
        yield f"[dim]{safe(': '.join(filter(None, header)))}[/]"


def searched_walls(report: Report) -> Iterator[RenderableType]:
    """A table of all searches for the longest N."""
    if searched := wall_groups(report.meta):
        yield from render_block(marked(walls(searched), report.names))


def terminal_summary(report: Report) -> list[str]:
    """The sentences of the cards and of the summary, for the end of a run."""
    sentences = (
        *unanswered_texts(report.meta),
        *filter(None, (report.answer, report.certainty)),
        *(
            told(card)
            for section in report.answered.values()
            for card in section.cards
            if card.sentence
        ),
        *report.lines,
        *(f"{one.label}: {one.text}" for one in report.trust if one.state == "caution"),
    )
    return list(dict.fromkeys(sentences))
