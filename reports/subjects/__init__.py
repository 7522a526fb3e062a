"""What a report tells: one module a subject, from rows to what is said and shown of them.

A subject is a module of this folder, or of `reports/PACK/subjects/`, whose name does not begin with
`_`. It is found by its file: no list is edited to add one. `block.py` is the one to copy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Protocol, cast

from ..data.row_groups import Row
from ..data.run_meta import Meta, by_question, scenario_name
from ..elements import Bars, Block, Card, DotPlot, Figure, Maps, Table, Text, note

REPORTS = Path(__file__).parent.parent
PACKAGE = __name__.rpartition(".")[0]
SECTIONS = {
    "device": "Use of the GPU",
    "memory": "Memory",
    "time": "Time",
    "asked": "What was asked",
    "trust": "Can I trust it?",
    "more": "Everything else",
}
"""The sections of a page below its answer, in order."""
ALL_CLAIMS = "Which textbook claims about attention hold here?"
MOST_BESIDE = 3  # columns of a table that stands beside a picture
CLAIMS = "claims"  # scenarios whose names begin with this test the claims


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What one subject has to say about some runs.

    `card`: its answer. Its picture is the first figure of the subject and its sentence the finding:
    neither is said again in `blocks`. `lines`: findings that no card says, a sentence each.
    `blocks`: the rest, shown on demand. `lacking`: why there is nothing, if there is nothing else.
    """

    card: Card | None = None
    lines: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    lacking: str = ""

    def details(self, *, alone: bool) -> tuple[Block, ...]:
        """All that is shown on demand. `alone`: also what the card and the lines say and show,
        because they do not stand above.
        """
        said: list[Block] = []
        if alone:
            said = [Text(text=line) for line in self.lines]
        if alone and self.card is not None:
            said.insert(0, Text(text=self.card.sentence))
            picture = self.card.picture
            said += [picture] if isinstance(picture, Table | Figure | Maps | Bars) else []
            said += [picture.table] if isinstance(picture, DotPlot) else []
            said += [note(self.card.note)] if self.card.note else []
        if not (said or self.blocks) and self.lacking:
            return (note(self.lacking),)
        return (*said, *self.blocks)


class Teller(Protocol):
    """A module of a subject.

    `SECTION`: where on the page it stands, one of SECTIONS: its card open, its details closed. What
    has neither card nor line is in the last one. `ORDER`: its place there. Optional `APART`:
    without a card all that it says is in the last section too.
    Optional `BELOW_CLAIMS`: runs that test claims show its card's sentence and picture below.
    Optional `STUDIES`: those that it shows; Studies has tables of all others.
    Optional `OVER_QUESTIONS`: where runs ask several questions, it makes one card over all of them,
    which answers this question and stands above the others.
    """

    __name__: str
    TITLE: str
    SECTION: str
    ORDER: int

    def subject(self, rows: Sequence[Row], meta: Meta) -> Subject: ...


def tellers() -> list[Teller]:
    """Every subject, in the order of their sections."""
    folders = {PACKAGE: REPORTS} | {
        f"{PACKAGE}.{folder.parent.name}": folder.parent for folder in REPORTS.glob("*/subjects")
    }
    found = [
        cast(Teller, import_module(f"{package}.subjects.{module.name}"))
        for package, folder in folders.items()
        for module in iter_modules([str(folder / "subjects")])
        if not module.name.startswith("_")
    ]
    order = list(SECTIONS)
    return sorted(found, key=lambda one: (order.index(one.SECTION), one.ORDER, one.__name__))


def name_of(one: Teller) -> str:
    return one.__name__.rpartition(".")[2]


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The rows of some runs; what each subject says of them is made once."""

    rows: Sequence[Row]
    meta: Meta

    @cached_property
    def _told(self) -> dict[str, Subject]:
        return {}

    def of(self, runs: Meta) -> "Rows":
        """Those of some of the runs."""
        return replace(self, rows=[row for row in self.rows if row["run"] in runs], meta=runs)

    def tell(self, one: Teller) -> Subject:
        """What the subject has to say."""
        if one.__name__ not in self._told:
            self._told[one.__name__] = tell(one, self.rows, self.meta)
        return self._told[one.__name__]


def tell(one: Teller, rows: Sequence[Row], meta: Meta) -> Subject:
    """What the subject has to say. Its card has the subject's name, and is wide if its figure has
    many panels, or two and a table that would be taller than they are, or its table many columns.
    """
    told = one.subject(rows, meta)
    if (card := told.card) is None:
        return told
    beside = 1 if isinstance(card.decisions, Table) else 2  # panels
    wide = card.wide or (isinstance(card.picture, Figure) and len(card.picture.panels) > beside)
    if isinstance(card.decisions, Table):
        wide = wide or len(card.decisions.upright.columns) > MOST_BESIDE
    named = replace(card, name=name_of(one), section=one.SECTION, wide=wide)
    return replace(told, card=named)


def cards(rows: Rows) -> list[Card]:
    """The answers that these runs have, question by question, in the page's order.

    With several questions every card says which scenario and question it is about, and names stay
    unique.
    """
    every, questions = tellers(), by_question(rows.meta)
    if len(questions) < 2:
        return _cards(every, rows)
    over = {one: str(getattr(one, "OVER_QUESTIONS", "")) for one in every}
    found = {
        card.name: replace(card, question=asked)
        for one, asked in over.items()
        for card in (_cards([one], rows) if asked else ())
    }
    for question, runs in questions.items():
        scenario = scenario_name(next(iter(runs.values())))
        others = [one for one in tellers() if not over.get(one)]
        for card in _cards(others, rows.of(runs)):
            name, number = card.name, 1
            while name in found:
                number += 1
                name = f"{card.name}-{number}"
            title = f"{card.title}: {scenario}"
            found[name] = replace(card, name=name, title=title, question=question or scenario)
    return list(found.values())


def _cards(of: Sequence[Teller], rows: Rows) -> list[Card]:
    below = testing_claims(rows.meta)
    return [
        card
        for one in of
        if not (below and getattr(one, "BELOW_CLAIMS", False))
        and (card := rows.tell(one).card) is not None
    ]


def testing_claims(meta: Meta) -> bool:
    """Whether every run was made to test claims."""
    return bool(meta) and all(scenario_name(run).startswith(CLAIMS) for run in meta.values())
