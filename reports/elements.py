"""What a section is made of: sentences, badges, tables and figures, as values; the page decides how
they look.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Unit = Literal["bytes", "ms", "ratio", "share", "flops_per_s", "plain"]
Scale = Literal["log", "linear"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """`question` is what the run is for, `finding` answers something, `note` limits or explains,
    `log` is what a program printed.
    """

    text: str
    kind: Literal["question", "finding", "note", "log"] = "finding"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Cells are text already; the first column names the row. `strong`: cells (row, column) that
    stand out; `folded`: shown on demand.

    `failed`: cells of what did not run, or became worse. `cases`: the key of the case
    (problems.key) that a cell is about. `tools`: the table of all rows, which can be filtered and
    downloaded; there the keys stand in the first column.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    strong: frozenset[tuple[int, int]] = frozenset()
    failed: frozenset[tuple[int, int]] = frozenset()
    cases: Mapping[tuple[int, int], str] = field(default_factory=dict)
    folded: bool = False
    tools: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """One reason to trust the numbers or not: a word or two, how it stands, and a sentence. What
    nobody looked at is unknown.
    """

    label: str
    state: Literal["good", "caution", "unknown"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Badges:
    badges: tuple[Badge, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The points of one backend in order of x. Without a y a line is broken there, and a `failed`
    point stands at the upper edge.

    A `trace` is a thin line of many points without marks. A backend that the page does not know is
    drawn in grey. `cases`: the key of each point's case (problems.key), where points are cases.
    """

    backend: str
    kind: Literal["measured", "formula", "failed", "trace"]
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    cases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One pair of axes; `line` is a horizontal one, with its label. `unit` is that of y: it says
    how ticks are written.
    """

    x_label: str
    y_label: str
    unit: Unit
    series: tuple[Series, ...]
    line: tuple[float, str] | None = None
    x_scale: Scale = "log"
    y_scale: Scale = "log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """`title` states the finding, `caption` names device, scenario and problem, `description` is
    for those who cannot see it.

    `same_y`: all panels have the limits of y in common, so that heights compare.
    """

    title: str
    caption: str
    description: str
    panels: tuple[Panel, ...]
    table: Table
    same_y: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """Numbers from 0 on in rows, drawn darker for more."""

    label: str
    rows: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Maps:
    """Maps with one scale, side by side. Title, caption, description and table as of a Figure."""

    title: str
    caption: str
    description: str
    x_label: str
    y_label: str
    value_label: str
    maps: tuple[Map, ...]
    table: Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A whole, and the shares of it that are taken, one after the other; `note` says it in numbers.
    `full`: it is what ends first.
    """

    label: str
    shares: tuple[float, ...]
    note: str
    full: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Bars below each other in groups with a heading each. Title, caption, description and table as
    of a Figure.
    """

    title: str
    caption: str
    description: str
    groups: tuple[tuple[str, tuple[Bar, ...]], ...]
    table: Table


Block = Text | Table | Badges | Figure | Maps | Bars
