"""What a subject found, as frames and facts; the summary, the card and the section say one text."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from jinja2 import Environment, StrictUndefined, select_autoescape

from ..data.cases import records
from ..data.processor_time import time_of
from ..data.row_groups import case_key
from ..elements import Block, Card, DotPlot, Figure, Marked, Table, Text, note, table_of
from ..formatting import capital, list_text, rough_percent_text
from ..judging.ratio import Ratio
from ..quantity import Cell, Quantity, Unit
from . import Subject
from ._drawn import dots, lines

if TYPE_CHECKING:
    import pandas as pd

# Sentences are plain text, which pages escape.
JINJA = Environment(
    undefined=StrictUndefined, autoescape=select_autoescape((), default_for_string=False)
)
JINJA.filters |= {
    unit: lambda value, unit=unit: str(Quantity(value, unit)) for unit in get_args(Unit)
}
JINJA.filters |= {"listed": list_text, "capital": capital, "rough": rough_percent_text}
PICTURES: Mapping[str, Callable[..., Figure | DotPlot]] = {"lines": lines, "dots": dots}
OF_RATIOS = ("marked", "text", "short", "bounds", "word")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """`sentence`: a template of jinja, at most five lines, filled with `facts`.

    `frame`, `columns`: its table, by title "column:unit" (`cell`), under a `heading`; columns
    without any value are left out. `picture`: one of PICTURES and its encoding, in place of the
    table. `shown`: open on a card, open as a line with the table on demand, or all on demand. Other
    fields as in Card and Table.
    """

    title: str
    sentence: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    frame: "pd.DataFrame"
    columns: Mapping[str, str]
    heading: str = ""
    picture: tuple[str, Mapping[str, Any]] | None = None
    shown: Literal["card", "line", "detail"] = "line"
    subtitle: str = ""
    sure: str = ""
    note: str = ""
    about: str = ""
    folded: bool = False
    most: int | None = None

    @cached_property
    def text(self) -> str:
        found = JINJA.from_string(self.sentence).render(self.facts)
        return capital(re.sub(" +", " ", found).strip())

    @cached_property
    def table(self) -> Table:
        heading = self.heading or self.title
        return frame_table(heading, self.frame, self.columns, folded=self.folded, most=self.most)

    @cached_property
    def drawn(self) -> Figure | DotPlot | Table:
        if self.picture is None:
            return self.table
        kind, encoding = self.picture
        return PICTURES[kind](self.text.removesuffix("."), self.table, **encoding)

    @property
    def card(self) -> Card:
        return Card(
            title=self.title,
            sentence=self.text,
            picture=self.drawn,
            subtitle=self.subtitle,
            sure=self.sure,
            note=self.note,
            about=self.about,
        )


def told(answers: Sequence[Answer], how: str = "", lacking: str = "") -> Subject:
    """What is shown of them: the first card, lines, and the rest on demand, after `how` it was
    made. `lacking`: what to say without any.
    """
    if not answers:
        return Subject(lacking=lacking)
    first = next((one for one in answers if one.shown == "card"), None)
    blocks: list[Block] = [note(how)] if how else []
    for one in answers:
        if one is not first:
            blocks += [Text(text=one.text)] if one.text and one.shown != "line" else []
            drawn = one.drawn
            blocks.append(drawn.table if isinstance(drawn, DotPlot) else drawn)
    lines = tuple(one.text for one in answers if one.shown == "line" and one.text)
    return Subject(card=first.card if first else None, lines=lines, blocks=tuple(blocks))


def frame_table(
    title: str,
    frame: "pd.DataFrame",
    columns: Mapping[str, str],
    *,
    folded: bool = False,
    most: int | None = None,
) -> Table:
    """`columns`: "column:unit" by title. A case's first cell leads to it, by the column `row`."""

    def maker(spec: str) -> Callable[[Mapping[str, Any]], Cell | Marked]:
        name, _, unit = spec.partition(":")
        return lambda line: cell(line[name], unit)

    made = {title: maker(spec) for title, spec in columns.items()}
    return table_of(
        title,
        records(frame),
        made,
        case=(lambda line: case_key(line["row"])) if "row" in frame else None,
        optional=[*columns],
        folded=folded,
        most=most,
    )


def cell(value: Any, unit: str = "") -> Cell:
    """`unit`: of a Quantity; "time" of a row, its latency; one of OF_RATIOS, how a Ratio writes
    itself; else the value as it is.
    """
    if value is None:
        return ""
    if unit == "time":
        return time_of(value)
    if unit in OF_RATIOS:
        return str(getattr(value, unit)) if isinstance(value, Ratio) else ""
    return Quantity(value, cast(Unit, unit)) if unit else value
