"""What a section is made of: sentences, tables and figures, as values; the page decides how they look."""

from dataclasses import dataclass
from typing import Literal

Unit = Literal["bytes", "ms", "ratio", "share", "flops_per_s", "plain"]
Scale = Literal["log", "linear"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """`question` is what the run is for, `finding` answers something, `note` limits or explains, `log` is what a program printed."""

    text: str
    kind: Literal["question", "finding", "note", "log"] = "finding"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Cells are text already; the first column names the row. `strong`: cells (row, column) that stand out; `folded`: shown on demand."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    strong: frozenset[tuple[int, int]] = frozenset()
    folded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The points of one backend in order of x. Without a y a line is broken there, and a `failed` point stands at the upper edge."""

    backend: str
    kind: Literal["measured", "formula", "failed"]
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One pair of axes; `line` is a horizontal one, with its label. `unit` is that of y: it says how ticks are written."""

    x_label: str
    y_label: str
    unit: Unit
    series: tuple[Series, ...]
    line: tuple[float, str] | None = None
    x_scale: Scale = "log"
    y_scale: Scale = "log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """`title` states the finding, `caption` names device, scenario and problem, `description` is for those who cannot see it."""

    title: str
    caption: str
    description: str
    panels: tuple[Panel, ...]
    table: Table


Block = Text | Table | Figure
