"""Runs opened for rendering: the answer, how sure it is, sections, and reasons to trust them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from ..data.anonymous import anonymous
from ..data.load import rows_of
from ..data.row_groups import Row, first_copies
from ..data.run_meta import Meta, Run, by_question, read_runs, run_meta, stopped, unanswered_texts
from ..elements import Badge, Block, Card, Figure, Table, Text
from ..subjects import (
    ALL_CLAIMS,
    SECTIONS,
    Rows,
    Teller,
    cards,
    name_of,
    tellers,
    testing_claims,
    trust,
)
from ..subjects._choice import Choices, certainty, choices, regret, take
from ..subjects._memory_card import WALL
from .run_titles import (
    Shown,
    header,
    marked,
    marked_names,
    page_title,
    questions,
    run_titles,
    subtitle,
)

WITH_RUN_NAMES = ("environment",)  # sections that say in which folder a run is
TRUST, MORE = "trust", "more"
COSTS = ("heads", "contrasts")
"""What a setting costs: where some backends do not fit, which one to take comes first."""
BESIDE = (*COSTS, "growth")  # of a run from options, which asks how its cases compare
FROM_OPTIONS = "command line"  # the source of its scenario


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one subject shows on demand."""

    name: str
    title: str
    blocks: Sequence[Block]

    @property
    def has_data(self) -> bool:
        """Whether it has more than notes."""
        return any(not isinstance(block, Text) or block.kind != "note" for block in self.blocks)


@dataclass(frozen=True, kw_only=True)
class Section:
    """`cards`, `lines`, the regret of all `choices` and the badges of `trust` are open, `parts` are
    closed. `shown`: so many cards are open, the others and the lines below one heading; None: all.
    """

    name: str
    title: str
    cards: Sequence[Card] = ()
    shown: int | None = None
    lines: Sequence[str] = ()
    choices: Table | None = None
    trust: Sequence[Badge] = ()
    parts: Sequence[Part] = ()


@dataclass(frozen=True, kw_only=True)
class Report:
    """`names`: each backend, with its mark if it is not exact: `linformer ~`."""

    MADE_BY: ClassVar = "report"
    AVERAGED: ClassVar = "No number is averaged over problems"
    runs: Sequence[Run]
    rows: list[Row]
    meta: Meta
    names: Mapping[str, str]

    @property
    def title(self) -> str:
        """The names of the scenarios, and their questions."""
        asked = " ".join(self.questions)
        return f"{self.heading}: {asked}" if asked else self.heading

    @property
    def heading(self) -> str:
        """The page's title."""
        return page_title(self.meta)

    @property
    def asks(self) -> str:
        """The question, if there is one; else the heading."""
        if len(self.questions) > 1 and testing_claims(self.meta):
            return ALL_CLAIMS
        return self.questions[0] if len(self.questions) == 1 else self.heading

    @property
    def questions(self) -> list[str]:
        """What the runs ask, each question once."""
        return questions(self.meta)

    @property
    def is_choice(self) -> bool:
        """Whether it may say which backend to take: of one question, that is of no claims."""
        return len(by_question(self.meta)) < 2 and not testing_claims(self.meta)

    @cached_property
    def _choices(self) -> Choices | None:
        return choices(self.rows) if self.is_choice else None

    @cached_property
    def lead(self) -> Card | None:
        """The card that answers the question; None if that is which backend to take, or if there
        are several questions.
        """
        asked = [card for card in self.cards if card.section == "asked"]
        if len(by_question(self.meta)) > 1 and not testing_claims(self.meta):
            return None
        walls = [card for card in self.cards if card.title == WALL]
        if walls and not asked and any("how long" in one.lower() for one in self.questions):
            return walls[0]
        if all(run["scenario"].get("source") == FROM_OPTIONS for run in self.meta.values()):
            asked = [card for card in asked if card.name not in BESIDE]
        is_cost = bool(asked) and asked[0].name in COSTS
        is_wall = any(card.name == "wall" for card in self.cards)
        if self._choices is not None and (not asked or (is_cost and is_wall)):
            return None
        return next(iter([*asked, *self.cards]), None)

    @cached_property
    def answer(self) -> str:
        """One sentence: which backend to take, or what was asked; "" with several questions."""
        if self.lead is not None:
            return told(self.lead)
        return self._called(take(self._choices)) if self._choices else ""

    @cached_property
    def certainty(self) -> str:
        """How sure that is, and what would make it surer."""
        if self.lead is not None:
            return self.lead.sure
        if self._choices is None:
            return ""
        found = certainty(self._choices, self.rows, self.meta)
        return self._called(found)

    @cached_property
    def regret(self) -> Table | None:
        """What taking each backend would have cost; None with nothing to choose from."""
        return self._called(regret(self._choices)) if self._choices else None

    @property
    def choices(self) -> Table | None:
        """The regret, where which backend to take is the answer."""
        return self.regret if self.lead is None else None

    @property
    def notes(self) -> list[str]:
        """What was left out when the files were read."""
        titles = self.titles.values()
        return [
            f"{title}: {note}"
            for title, run in zip(titles, self.runs, strict=True)
            for note in run.notes
        ]

    @cached_property
    def stopped(self) -> Sequence[str]:
        """Of each run that ended early: how much was measured, and how to go on; of studies that
        found nothing: which, and why.
        """
        return [*stopped(self.rows, self.meta), *unanswered_texts(self.meta)]

    @property
    def backends(self) -> list[str]:
        """As they are shown; the place of each is its look in figures."""
        return list(self.names.values())

    @cached_property
    def titles(self) -> Mapping[str, str]:
        """What each run is called, by its name."""
        return run_titles(self.meta)

    @property
    def headers(self) -> Mapping[str, tuple[str, str]]:
        """Of each run its scenario and title, "" if there is only one; its device, sizes, date."""
        return {
            name: (
                header(run, self.titles[name]) if len(self.meta) > 1 else "",
                subtitle(run, [row for row in self.rows if row["run"] == name]),
            )
            for name, run in self.meta.items()
        }

    @cached_property
    def cards(self) -> Sequence[Card]:
        """The answers, in the page's order."""
        return self._called(tuple(cards(self._rows)))

    @cached_property
    def trust(self) -> Sequence[Badge]:
        """Right, undisturbed, repeated, complete: a sentence each; none without cases."""
        found = tuple(trust.trust(self.rows, self.meta))
        return self._called(found)

    def _called(self, found: Shown) -> Shown:
        """With the names that a page has for backends and runs."""
        return marked(found, {**self.names, **self.titles})

    @cached_property
    def _rows(self) -> Rows:
        return Rows(rows=self.rows, meta=self.meta)

    @property
    def subjects(self) -> list[Teller]:
        """All that are about something in these runs, in the order of their sections."""
        return tellers()

    @cached_property
    def answered(self) -> Mapping[str, Section]:
        """The sections by name, without what they show on demand and without trust. What the answer
        says is not said again.
        """
        found = {name: Section(name=name, title=title) for name, title in SECTIONS.items()}
        for card in self.cards:
            at = card.section or "asked"
            shown = self._unsaid(card)
            if shown.sentence or shown.picture or shown.sure or shown.note:
                found[at] = replace(found[at], cards=[*found[at].cards, shown])
        for one in self.subjects:
            if not self._apart(one) and (lines := self._lines(one)):
                at = one.SECTION
                found[at] = replace(found[at], lines=[*found[at].lines, *lines])
        if self.lead is not None:
            found["time"] = replace(found["time"], choices=self.regret)
        if self.lead is not None and self.lead.question == ALL_CLAIMS:  # it has a table of verdicts
            found = {
                name: replace(one, shown=sum(card.name == self.lead.name for card in one.cards))
                for name, one in found.items()
            }
        asked = found["asked"]
        if len(asked.cards) == 1:
            found["asked"] = replace(asked, title=asked.cards[0].title)
        first = ["asked"] if self.lead is not None and self.lead.section == "asked" else []
        return {name: found[name] for name in dict.fromkeys([*first, *found])}

    @cached_property
    def sections(self) -> Sequence[Section]:
        """All below the answer."""
        found = {**self.answered}
        found[TRUST] = replace(found[TRUST], trust=self.trust)
        for one in self.subjects:
            apart = self._apart(one)
            part = self.part(one, alone=apart)
            if part.has_data:
                at = one.SECTION if found[one.SECTION].cards or found[one.SECTION].lines else MORE
                at = MORE if apart else TRUST if one.SECTION == TRUST else at
                found[at] = replace(found[at], parts=[*found[at].parts, part])
        return [one for one in found.values() if one.cards or one.lines or one.parts or one.trust]

    def _apart(self, one: Teller) -> bool:
        """Whether all of it stands in the last section: what the runs measured beside what they
        ask.
        """
        carded = {card.name for card in self.cards}
        return bool(getattr(one, "APART", False)) and name_of(one) not in carded

    @cached_property
    def _said(self) -> set[str]:
        return {text for one in per_question(self) for text in (one.answer, one.certainty)}

    def _unsaid(self, card: Card) -> Card:
        """Without what the answer says. Two panels without words beside them have its width."""
        sentence = "" if told(card) in self._said else card.sentence
        sure = "" if card.sure in self._said else card.sure
        is_pair = isinstance(card.picture, Figure) and len(card.picture.panels) > 1
        wide = card.wide or (is_pair and not (sentence or sure or card.decisions))
        return replace(card, sentence=sentence, sure=sure, wide=wide)

    def part(self, one: Teller, *, alone: bool = False) -> Part:
        """The details, as they are shown: names of backends with exactness marks, runs by their
        titles. `alone`: with what its card says, where no cards stand above.
        """
        name = name_of(one)
        names = {**self.names, **(self.titles if name not in WITH_RUN_NAMES else {})}
        blocks = self._rows.tell(one).details(alone=alone)
        return Part(name=name, title=one.TITLE, blocks=marked(tuple(blocks), names))

    def _lines(self, one: Teller) -> Sequence[str]:
        """Findings that no card says, a sentence each."""
        return self._called(self._rows.tell(one).lines)

    @property
    def lines(self) -> list[str]:
        return [line for one in tellers() for line in self._lines(one)]


@dataclass(frozen=True, kw_only=True)
class Answered(Report):
    """A page with a heading and an answer of its own, in place of those of its runs' questions."""

    @property
    def questions(self) -> list[str]:
        return []

    @property
    def is_choice(self) -> bool:
        return False

    @cached_property
    def lead(self) -> Card | None:
        return None


def told(card: Card) -> str:
    """Its sentence, where no title stands above it."""
    return f"{card.about}: {card.sentence}" if card.about and card.sentence else card.sentence


def per_question(report: Report) -> list[Report]:
    """One report per question, in the order of the runs; backends look alike in all of them.

    What is no plain report has one answer to all.
    """
    one_answer = type(report) is not Report or testing_claims(report.meta)
    if one_answer or len(by_question(report.meta)) < 2:
        return [report]
    runs = dict(zip(report.meta, report.runs, strict=True))
    return [
        replace(
            report,
            runs=[runs[name] for name in meta],
            rows=[row for row in report.rows if row["run"] in meta],
            meta=meta,
        )
        for meta in by_question(report.meta).values()
    ]


def page_path(run_paths: Sequence[str | Path]) -> Path:
    """Where the page goes by default: report.html in the folder of a run, or beside several."""
    first = Path(run_paths[0])
    return (first if len(run_paths) == 1 else first.resolve().parent) / "report.html"


def open_report(
    run_paths: Sequence[str | Path], *, salvage: bool = False, hide: bool = False
) -> Report:
    """`salvage`: without rows that cannot be read. `hide`: what tells of the machine's owner.

    Raises BadRun.
    """
    runs: Sequence[Run] = read_runs(run_paths, salvage=salvage)
    runs = anonymous(runs) if hide else runs
    rows, meta = list(first_copies(rows_of(runs))), run_meta(runs)
    return Report(runs=runs, rows=rows, meta=meta, names=marked_names(rows, meta))
