"""The answers of a page's first screen, one file each, found by file name: a sentence, a picture.

A card that has nothing to say about these runs is left out. Sections below have the details.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, cast

import pandas as pd

from ..data.copies import first_copies
from ..data.row_groups import records
from ..data.run_meta import Meta, about, by_question, scenario_name
from ..elements import Card
from ..subjects import Teller, tell, tellers
from ..subjects._over import tests_claims


class CardMaker(Protocol):
    """A module of this package. `ORDER`: its place on the page. Optional `ABOUT`: as of a section.

    Optional `ALL_COPIES`: it gets the further copies of a case (`--replicate`) too.
    Optional `OVER_QUESTIONS`: where runs ask several questions, it makes one card over all of them,
    which answers this question and stands above the others.
    """

    __name__: str
    ORDER: int

    def card(self, frame: pd.DataFrame, meta: Meta) -> Card | None: ...


@dataclass(frozen=True)
class OfSubject:
    """The card of a subject, as a module of this folder gives one."""

    subject: Teller

    def __getattr__(self, name: str) -> object:
        return getattr(self.subject, name)

    def card(self, frame: pd.DataFrame, meta: Meta) -> Card | None:
        if tests_claims(meta) and getattr(self.subject, "BELOW_CLAIMS", False):
            return None
        return tell(self.subject, records(frame), frame.columns, meta).card


def makers() -> list[CardMaker]:
    names = [module.name for module in iter_modules(__path__) if not module.name.startswith("_")]
    found = [cast(CardMaker, import_module(f"{__name__}.{name}")) for name in names]
    found += [cast(CardMaker, OfSubject(one)) for one in tellers()]
    return sorted(found, key=lambda maker: (maker.ORDER, maker.__name__))


def cards(frame: pd.DataFrame, meta: Meta) -> list[Card]:
    """The answers that these runs have, question by question, in the page's order.

    With several questions every card says which scenario and question it is about, and names stay
    unique.
    """
    questions = by_question(meta)
    if len(questions) < 2:
        return list(_cards(makers(), frame, meta))
    over = [maker for maker in makers() if _asked_over_all(maker)]
    found = {
        card.name: replace(card, question=_asked_over_all(maker))
        for maker in over
        for card in _cards([maker], frame, meta)
    }
    others = [maker for maker in makers() if not _asked_over_all(maker)]
    for question, runs in questions.items():
        scenario = scenario_name(next(iter(runs.values())))
        for card in _cards(others, frame[frame["run"].isin(list(runs))], runs):
            name, number = card.name, 1
            while name in found:
                number += 1
                name = f"{card.name}-{number}"
            title = f"{card.title}: {scenario}"
            found[name] = replace(card, name=name, title=title, question=question or scenario)
    return list(found.values())


def _asked_over_all(maker: CardMaker) -> str:
    return str(getattr(maker, "OVER_QUESTIONS", ""))


def _cards(of: Sequence[CardMaker], frame: pd.DataFrame, meta: Meta) -> Iterator[Card]:
    first = first_copies(frame)
    found = (
        maker.card(frame if getattr(maker, "ALL_COPIES", False) else first, meta)
        for maker in of
        if about(meta) & set(getattr(maker, "ABOUT", ("cases", "kernels")))
    )
    return (card for card in found if card is not None)
