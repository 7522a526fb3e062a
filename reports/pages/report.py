"""Runs opened for rendering: cards, sections with data, and reasons to trust."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from ..data.load import rows_of
from ..data.read import Run, read_runs
from ..data.row_groups import Row, first_copies
from ..data.run_meta import Meta, by_question, run_meta
from ..elements import Badge, Block, Card, Text
from ..subjects import Rows, Teller, cards, name_of, tellers_of, testing_claims
from ..subjects._race import take
from ..subjects.summary import badges
from .exactness_marks import marked, marked_names
from .run_titles import page_title, questions, run_titles, subtitle

WITH_RUN_NAMES = ("environment",)  # sections that say in which folder a run is
SUMMARY = "summary"  # the first subject: how the run went
STATES = ("good", "caution", "unknown")


@dataclass(frozen=True, kw_only=True)
class Part:
    """What stands below the first screen, subject by subject."""

    name: str
    title: str
    blocks: Sequence[Block]

    @property
    def has_data(self) -> bool:
        """Whether it has more than notes, which are all that a summary may need."""
        some = (not isinstance(block, Text) or block.kind != "note" for block in self.blocks)
        return any(some) or (self.name == SUMMARY and len(self.blocks) > 0)


@dataclass(frozen=True, kw_only=True)
class Report:
    """`names`: each backend, with its mark if it is not exact: `linformer ~`."""

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
    def questions(self) -> list[str]:
        """What the runs ask, each question once."""
        return questions(self.meta)

    @cached_property
    def answer(self) -> str:
        """Which backend to take, where one question is asked and several backends answer it."""
        several = len(by_question(self.meta)) > 1 or testing_claims(self.meta)
        return "" if several else marked(take(first_copies(self.rows)), self.names)

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
        """Of each run its title, "" if there is only one, and its device, sizes and date."""
        return {
            name: (
                self.titles[name] if len(self.meta) > 1 else "",
                subtitle(run, [row for row in self.rows if row["run"] == name]),
            )
            for name, run in self.meta.items()
        }

    @cached_property
    def cards(self) -> Sequence[Card]:
        """The answers, in the page's order."""
        names = {**self.names, **self.titles}
        return marked(tuple(cards(self._rows)), names)

    @property
    def answers(self) -> list[str]:
        """The names of the cards, as those of the sections; a second question numbers them."""
        return list(dict.fromkeys(re.sub(r"-\d+$", "", card.name) for card in self.cards))

    @cached_property
    def badges(self) -> Sequence[Badge]:
        """Reasons to trust the latencies or not, good ones first; none without cases."""
        found = badges(self.rows, self.meta) if self.rows else ()
        return sorted(found, key=lambda badge: STATES.index(badge.state))

    @cached_property
    def trust(self) -> str:
        """`2 good, 4 caution, 2 unknown`; empty without cases."""
        counts = Counter[str](badge.state for badge in self.badges)
        return ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])

    @cached_property
    def _rows(self) -> Rows:
        return Rows(every=self.rows, first=first_copies(self.rows), meta=self.meta)

    @property
    def subjects(self) -> list[Teller]:
        """All that are about something in these runs, in the order of the question: the summary,
        what the cards are about, the others.
        """
        asked = [SUMMARY, *self.answers]
        found = tellers_of(self.meta)
        place = {name_of(one): at for at, one in enumerate(found, start=len(asked))}
        place |= {name: at for at, name in enumerate(asked) if name in place}
        return sorted(found, key=lambda one: place[name_of(one)])

    @cached_property
    def parts(self) -> Sequence[Part]:
        """Every subject's details, in order."""
        return [self.part(one) for one in self.subjects]

    @property
    def answered(self) -> list[Part]:
        return [part for part in self.parts if part.has_data]

    def part(self, one: Teller, *, alone: bool = False) -> Part:
        """The details, as they are shown: names of backends with exactness marks, runs by their
        titles. `alone`: with what its card says, where no cards stand above.
        """
        name = name_of(one)
        names = {**self.names, **(self.titles if name not in WITH_RUN_NAMES else {})}
        blocks = self._rows.tell(one).details(with_card=alone or name not in self.answers)
        return Part(name=name, title=one.TITLE, blocks=marked(tuple(blocks), names))

    @property
    def lines(self) -> list[str]:
        """Findings that no card says, a sentence each."""
        every = (line for one in tellers_of(self.meta) for line in self._rows.tell(one).lines)
        return list(marked(tuple(every), {**self.names, **self.titles}))


def per_question(report: Report) -> list[Report]:
    """One report per question, in the order of the runs; backends look alike in all of them."""
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


def open_report(run_paths: Sequence[str | Path], *, salvage: bool = False) -> Report:
    """`salvage`: without rows that cannot be read. Raises BadRun."""
    runs = read_runs(run_paths, salvage=salvage)
    rows, meta = rows_of(runs), run_meta(runs)
    return Report(runs=runs, rows=rows, meta=meta, names=marked_names(rows, meta))
