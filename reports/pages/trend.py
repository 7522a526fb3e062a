"""A trend as one offline page: times over runs, what changed and when, and the newest run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..comparison import text
from ..comparison.trend import Trend
from ..comparison.trend_text import (
    about,
    changes,
    figure,
    headline,
    newest,
    sentences,
    value_tables,
)
from ..data.load import rows_of
from ..data.read import read_run
from ..data.run_meta import run_meta
from ..elements import Block, Card
from ..subjects import SECTIONS, name_of
from .exactness_marks import marked, marked_names
from .html import render as page_of
from .report import MORE, TRUST, Answered, Part, Section

TRUSTED = "Can I trust the newest run?"
KEPT = ("method", "environment", "rows")  # sections of the newest run that stay on this page


def render(found: Trend, *, salvage: bool = False) -> str:
    """The page as text; the same runs give the same bytes. Raises BadRun."""
    run = read_run(found.runs[-1].path, salvage=salvage)
    rows, meta = rows_of([run]), run_meta([run])
    return page_of(
        TrendReport(runs=[run], rows=rows, meta=meta, names=marked_names(rows, meta), trend=found)
    )


@dataclass(frozen=True, kw_only=True)
class TrendReport(Answered):
    """A report of the newest run, with the trend in place of its answers."""

    trend: Trend

    @property
    def heading(self) -> str:
        return f"{super().heading} over {len(self.trend.runs)} runs"

    @property
    def headers(self) -> Mapping[str, tuple[str, str]]:
        return {"": ("", about(self.trend))}

    @cached_property
    def cards(self) -> Sequence[Card]:
        """Times over runs."""
        said = " ".join(sentences(self.trend)[: text.MOST_NAMED])
        picture = figure(self.trend, self.names)
        card = Card(name="trend", title="Times over runs", sentence=said, picture=picture)
        return [marked(replace(card, note=picture.caption if picture else ""), self.names)]

    @cached_property
    def answer(self) -> str:
        return headline(self.trend)

    @cached_property
    def certainty(self) -> str:
        return " ".join(self.trend.notes)

    @cached_property
    def sections(self) -> Sequence[Section]:
        """The trend, the newest run against the base, and what is kept of the newest run's page."""
        kept = [self.part(one) for one in self.subjects if name_of(one) in KEPT]
        trusted = [
            replace(one, title=TRUSTED, parts=()) for one in super().sections if one.name == TRUST
        ]
        own: dict[str, list[Block]] = {
            "What changed": changes(self.trend),
            "The newest run": newest(self.trend),
            "Every run of every case": [*value_tables(self.trend)],
        }
        parts = [
            Part(name=f"trend.{place}", title=title, blocks=marked(tuple(some), self.names))
            for place, (title, some) in enumerate(own.items())
            if some
        ]
        time = Section(name="time", title=SECTIONS["time"], cards=self.cards, parts=parts)
        return [time, *trusted, Section(name=MORE, title=SECTIONS[MORE], parts=kept)]
