"""Every planned case, one row each."""

from collections.abc import Iterator

import pandas as pd

from ..analysis.context import Meta
from ..analysis.problems import records
from ..analysis.rows import readable
from ..blocks import Block, Table, Text

TITLE = "All rows"
ORDER = 70
NEEDS = ("case", "status")
MOST_ROWS = 2000


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    if frame.empty:
        yield Text(text="The plan has no case.", kind="note")
        return
    same, columns, rows = readable(records(frame.head(MOST_ROWS)))
    if same:
        yield Text(text=f"Equal in all rows: {', '.join(same)}.", kind="note")
    yield Table(title="All cases", columns=columns, rows=tuple(rows))
    if len(frame) > MOST_ROWS:
        yield Text(text=f"The first {MOST_ROWS} of {len(frame)} cases; the command export gives them all.", kind="note")
