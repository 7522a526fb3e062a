"""The mark of a backend that is not exact, set behind its name wherever a report says it:
`linformer ~`, `rnn ≠`.

Set on finished blocks, in one place, so that no section can forget it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from ..data.exactness import MARKS
from ..elements import Block, Figure, Maps, Panel, Table, Text

Say = Callable[[str], str]


def marked_names(table: pd.DataFrame, meta: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Every backend of the table in order, and the walls' own, with the name that is shown."""
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
    """`names` as marked_names gives them. What the run is asked and what a program printed stay as
    they are.
    """
    changed = {name: shown for name, shown in names.items() if shown != name}
    if not changed:
        yield from blocks
        return
    # A name within a longer one, a path or the id of a case is another word.
    longest_first = "|".join(re.escape(name) for name in sorted(changed, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w:/.-])(?:{longest_first})(?!:?[\w-])")

    def say(text: str) -> str:
        return pattern.sub(lambda found: changed[found.group()], text)

    for block in blocks:
        yield _block(block, say)


def _block(block: Block, say: Say) -> Block:
    if isinstance(block, Text):
        return block if block.kind in ("question", "log") else replace(block, text=say(block.text))
    if isinstance(block, Table):
        return _table(block, say)
    if isinstance(block, Figure):
        panels = tuple(_panel(panel, say) for panel in block.panels)
        return replace(
            block,
            title=say(block.title),
            caption=say(block.caption),
            panels=panels,
            table=_table(block.table, say),
        )
    if isinstance(block, Maps):
        return replace(block, title=say(block.title), table=_table(block.table, say))
    return block


def _table(table: Table, say: Say) -> Table:
    rows = tuple(tuple(map(say, row)) for row in table.rows)
    return replace(table, title=say(table.title), columns=tuple(map(say, table.columns)), rows=rows)


def _panel(panel: Panel, say: Say) -> Panel:
    return replace(
        panel, series=tuple(replace(series, backend=say(series.backend)) for series in panel.series)
    )
