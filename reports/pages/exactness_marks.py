"""Names as pages show them: inexact backends with a mark (`linformer ~`, `rnn ≠`), runs by title.

They are set on finished blocks, in one place, so that no section can forget them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

import pandas as pd

from ..data.exactness import MARKS
from ..data.run_meta import Meta
from ..elements import (
    Block,
    Card,
    DotPlot,
    DotRow,
    Figure,
    Maps,
    Panel,
    Picture,
    Table,
    Text,
    WallChart,
)

Mark = Callable[[str], str]


def marked_names(table: pd.DataFrame, meta: Meta) -> dict[str, str]:
    """Every backend of the table and of the walls, in order, with the name to show."""
    kinds: dict[str, str | None] = {}
    walls = (
        (wall["backend"], wall.get("exactness"))
        for run in meta.values()
        for wall in run.get("walls", ())
    )
    for name, kind in (*zip(table["backend"], table["exactness"], strict=True), *walls):
        kinds[name] = kinds.get(name) or (kind if isinstance(kind, str) and kind in MARKS else None)
    return {name: f"{name} {MARKS[kind]}" if kind else name for name, kind in kinds.items()}


def pattern_of(names: Iterable[str]) -> re.Pattern[str]:
    """Finds these names in a text, but not within a longer name, a path or the id of a case."""
    longest_first = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"(?<![\w:/.-])(?:{longest_first})(?!:?[\w-])")


def marked(blocks: Iterable[Block], names: Mapping[str, str]) -> Iterator[Block]:
    """The blocks with `names` as they are shown; logs are not changed."""
    mark = _mark(names)
    return iter(blocks) if mark is None else (_block(block, mark) for block in blocks)


def marked_card(card: Card, names: Mapping[str, str]) -> Card:
    mark = _mark(names)
    if mark is None:
        return card
    return replace(
        card,
        title=mark(card.title),
        sentence=mark(card.sentence),
        subtitle=mark(card.subtitle),
        note=mark(card.note),
        picture=None if card.picture is None else _picture(card.picture, mark),
    )


def _mark(names: Mapping[str, str]) -> Mark | None:
    """None if every name is shown as it is."""
    changed = {name: shown for name, shown in names.items() if shown != name}
    if not changed:
        return None
    return partial(pattern_of(changed).sub, lambda found: changed[found.group()])


def _block(block: Block, mark: Mark) -> Block:
    if isinstance(block, Text):
        return block if block.kind == "log" else replace(block, text=mark(block.text))
    if isinstance(block, Table):
        return _table(block, mark)
    if isinstance(block, Figure):
        return _figure(block, mark)
    if isinstance(block, WallChart):
        return _wall(block, mark)
    if isinstance(block, Maps):
        caption = mark(block.caption)
        table = _table(block.table, mark)
        return replace(block, title=mark(block.title), caption=caption, table=table)
    return block


def _picture(picture: Picture, mark: Mark) -> Picture:
    match picture:
        case Table():
            return _table(picture, mark)
        case Figure():
            return _figure(picture, mark)
        case DotPlot():
            table, description = _table(picture.table, mark), mark(picture.description)
            rows = tuple(_dot_row(row, mark) for row in picture.rows)
            return replace(picture, rows=rows, table=table, description=description)
        case WallChart():
            return _wall(picture, mark)


def _wall(chart: WallChart, mark: Mark) -> WallChart:
    return replace(
        chart,
        title=mark(chart.title),
        panels=tuple(
            (mark(title), tuple(replace(line, backend=mark(line.backend)) for line in lines))
            for title, lines in chart.panels
        ),
        table=_table(chart.table, mark),
        description=mark(chart.description),
    )


def _dot_row(row: DotRow, mark: Mark) -> DotRow:
    return replace(row, group=mark(row.group), label=mark(row.label))


def _figure(figure: Figure, mark: Mark) -> Figure:
    return replace(
        figure,
        title=mark(figure.title),
        caption=mark(figure.caption),
        panels=tuple(_panel(panel, mark) for panel in figure.panels),
        table=_table(figure.table, mark),
    )


def _table(table: Table, mark: Mark) -> Table:
    rows = tuple(
        tuple(mark(cell) if type(cell) is str else cell for cell in row) for row in table.rows
    )
    columns = tuple(map(mark, table.columns))
    return replace(table, title=mark(table.title), columns=columns, rows=rows)


def _panel(panel: Panel, mark: Mark) -> Panel:
    series = (replace(series, backend=mark(series.backend)) for series in panel.series)
    return replace(panel, title=mark(panel.title), series=tuple(series))
