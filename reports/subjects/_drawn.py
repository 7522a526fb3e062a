"""Pictures of frames: lines over a size, and dots of ratios."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..data.cases import following, problems, records
from ..data.row_groups import Group, Row, label
from ..data.run_meta import Meta, caption
from ..elements import Dot, DotPlot, DotRow, Figure, Panel, Table
from ..judging.ratio import Ratio
from ..quantity import Quantity
from ..words import SAME_RATIO
from ._over import panel, with_ends

if TYPE_CHECKING:
    import pandas as pd


def lines(
    title: str,
    table: Table,
    *,
    frame: "pd.DataFrame",
    x: str,
    y: str,
    by: str = "",
    caption: str = "",
    about: str = "",
    **axes: Any,
) -> Figure:
    """A line for each backend of the frame, whose `y` is a number, a Ratio or a Quantity with its
    bounds. `by`: the column that has the panels' titles. `axes`: as of `_over.panel`.
    """
    panels = _panels(frame, x, y, by, axes)
    return Figure(title=title, caption=caption, panels=panels, table=table, about=about)


def _panels(
    frame: "pd.DataFrame", x: str, y: str, by: str, axes: Mapping[str, Any]
) -> tuple[Panel, ...]:
    parts = frame.groupby(by, sort=False) if by else [("", frame)]
    column = f"{y}_{{}}drawn"
    return tuple(
        panel(Group(label=str(title), problem={}, rows=_drawn(some, y, column)), x, column, **axes)
        for title, some in parts
    )


def _drawn(frame: "pd.DataFrame", y: str, column: str) -> list[Row]:
    found = ((row, row[y]) for row in records(frame))
    return [
        with_ends(row, column, value)
        if isinstance(value, Ratio | Quantity)
        else row | {column.format(""): value}
        for row, value in found
    ]


def dots(
    title: str, table: Table, *, frame: "pd.DataFrame", x_label: str, ratio: str, of: str
) -> DotPlot:
    """A dot for each row: the Ratio in the column `ratio` of a `backend`, or why it is `missing`;
    `of`: the column that has the rows' headings. `remark`: what those add.
    """
    rows = tuple(
        DotRow(
            group=row[of],
            label=row["backend"],
            dot=Dot.of(found.value, found.low, found.high, found.word, found.mark)
            if found
            else None,
            missing="" if found else row["missing"],
            remark=row["remark"],
        )
        for row in records(frame)
        for found in [row[ratio]]
    )
    return DotPlot(rows=rows, x_label=x_label, band_ratio=SAME_RATIO, table=table)


def caption_of(frame: "pd.DataFrame", meta: Meta) -> str:
    """Device, scenario, what is equal in all cases, and what follows from what tells them apart."""
    of = problems(frame)
    same = {str(axis): of[axis].iloc[0] for axis in of if of[axis].nunique(dropna=False) == 1}
    text = caption(same, meta) if "run" in same else label(same)
    return " · ".join(filter(None, (text, following(frame))))
