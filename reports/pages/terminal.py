"""A report in the terminal: the answers first, sentences as lines, tables by rich."""

from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.markup import escape

from ..data.run_meta import unanswered_texts
from ..elements import Card, Table, Text
from ..subjects import name_of, tellers
from ..subjects._memory_over_n import wall_groups
from ..subjects.wall import walls
from .exactness_marks import marked
from .report import Part, Report, told
from .run_titles import page_title, questions
from .terminal_blocks import MOST_ROWS, grid, render_block, safe

SHORT_SENTENCE = 30  # characters


OLDER = {"summary": "trust"}  # names of earlier versions


def section_names() -> list[str]:
    return [name_of(one) for one in tellers()]


def render(report: Report, names: Iterable[str]) -> Iterator[RenderableType]:
    """The named subjects, in the page's order. With the summary come the answers."""
    requested = set(names)
    with_answers = "trust" in requested
    if with_answers:
        yield from head(report)
        yield from cards(report)
        lines = report.lines
        yield from ("" for _ in lines[:1])
        yield from map(safe, lines)
    for one in report.subjects:
        if name_of(one) in requested:
            part = report.part(one, alone=not with_answers)
            if part.blocks and (part.has_data or not with_answers):
                yield from _section(part)


def render_briefly(report: Report) -> Iterator[RenderableType]:
    """The answer, then the first sentence of each card and of each doubt."""
    yield from head(report)
    cards = [card for section in report.sections for card in section.cards]
    found = [f"{card.title}: {first_sentence(card.sentence)}" for card in cards if card.sentence]
    found += [first_sentence(line) for line in report.lines]
    yield from ("" for _ in found[:1])
    yield from map(safe, found)
    doubts = [one for one in report.trust if one.state == "caution"]
    yield from (f"[yellow]{safe(f'{one.label}: {first_sentence(one.text)}')}[/]" for one in doubts)


def first_sentence(text: str) -> str:
    """With the next if it is a short one, as `Same FLOPs.`"""
    end = text.find(". ", SHORT_SENTENCE)
    return text if end < 0 else text[: end + 1]


def _section(part: Part) -> Iterator[RenderableType]:
    yield f"\n[bold]{escape(part.title)}[/]"
    folded_rows = 0
    for block in part.blocks:
        if isinstance(block, Table) and block.folded:
            folded_rows += len(block.rows)
        yield from render_block(block, fold=folded_rows > MOST_ROWS)


def head(report: Report) -> Iterator[RenderableType]:
    """Scenario, device and date, the question, and how far to trust the numbers."""
    yield f"[bold]{safe(page_title(report.meta))}[/]"
    for header in report.headers.values():
        yield f"[dim]{safe(': '.join(filter(None, header)))}[/]"
    yield from map(safe, questions(report.meta))
    yield from (f"[yellow]{safe(one)}[/]" for one in report.stopped)
    if report.answer:
        yield f"[bold]{safe(report.answer)}[/]"
    if report.certainty:
        yield safe(report.certainty)
    if report.regret is not None:
        yield grid(report.regret)


def cards(report: Report) -> Iterator[RenderableType]:
    """The answers: a sentence each, and the table of its picture."""
    for section in report.sections:
        for card in section.cards:
            yield ""
            yield from render_card(card)


def render_card(card: Card) -> Iterator[RenderableType]:
    subtitle = f" [dim]{safe(card.subtitle)}[/]" if card.subtitle else ""
    yield f"[bold]{safe(card.title)}[/]{subtitle}"
    yield from map(safe, filter(None, (card.sentence, card.sure)))
    picture = card.decisions or card.picture
    if picture is not None:
        yield grid(picture if isinstance(picture, Table) else picture.table)


def searched_walls(report: Report) -> Iterator[RenderableType]:
    """A table of all searches for the longest N."""
    if searched := wall_groups(report.meta):
        yield from render_block(marked(walls(searched), report.names))


def terminal_summary(report: Report) -> list[str]:
    """The sentences of the cards and of the summary, for the end of a run."""
    parts = [report.part(one) for one in report.subjects if name_of(one) == "trust"]
    texts = [one for part in parts for one in part.blocks if isinstance(one, Text)]
    sentences = (
        *unanswered_texts(report.meta),
        *filter(None, (report.answer, report.certainty)),
        *(told(card) for section in report.sections for card in section.cards if card.sentence),
        *report.lines,
        *(text.text for text in texts if text.kind == "caution"),
    )
    return list(dict.fromkeys(sentences))
