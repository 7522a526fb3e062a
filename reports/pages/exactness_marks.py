"""Marks behind the names of inexact backends: `linformer ~`, `rnn ≠`.

They are set on finished blocks, in one place, so that no section can forget them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import pandas as pd

from ..data.exactness import MARKS
from ..data.run_meta import Meta
from ..elements import Block, Figure, Maps, Panel, Table, Text

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


def marked(blocks: Iterable[Block], names: Mapping[str, str]) -> Iterator[Block]:
    """The blocks with `names` of marked_names; questions and logs are not changed."""
    changed = {name: shown for name, shown in names.items() if shown != name}
    if not changed:
        yield from blocks
        return
    # Not within a longer name, a path or the id of a case.
    longest_first = "|".join(re.escape(name) for name in sorted(changed, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w:/.-])(?:{longest_first})(?!:?[\w-])")

    def mark(text: str) -> str:
        return pattern.sub(lambda found: changed[found.group()], text)

    for block in blocks:
        yield _block(block, mark)


def _block(block: Block, mark: Mark) -> Block:
    if isinstance(block, Text):
        keep = block.kind in ("question", "log")
        return block if keep else replace(block, text=mark(block.text))
    if isinstance(block, Table):
        return _table(block, mark)
    if isinstance(block, Figure):
        return replace(
            block,
            title=mark(block.title),
            caption=mark(block.caption),
            panels=tuple(_panel(panel, mark) for panel in block.panels),
            table=_table(block.table, mark),
        )
    if isinstance(block, Maps):
        return replace(block, title=mark(block.title), table=_table(block.table, mark))
    return block


def _table(table: Table, mark: Mark) -> Table:
    rows = tuple(tuple(map(mark, row)) for row in table.rows)
    columns = tuple(map(mark, table.columns))
    return replace(table, title=mark(table.title), columns=columns, rows=rows)


def _panel(panel: Panel, mark: Mark) -> Panel:
    series = (replace(series, backend=mark(series.backend)) for series in panel.series)
    return replace(panel, series=tuple(series))
