"""Every planned case, one row each."""

from collections.abc import Iterator

import pandas as pd

from ..analysis.reproduce import command
from ..analysis.rows import case_key, readable
from ..data.run_meta import Meta
from ..data.row_groups import records
from ..elements import Block, Table, Text

TITLE = "All rows"
ORDER = 70
NEEDS = ("case", "status")
MOST_ROWS = 2000


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    if frame.empty:
        yield Text(text="The plan has no case.", kind="note")
        return
    known = records(frame.head(MOST_ROWS))
    same, columns, rows = readable(known)
    if same:
        yield Text(text=f"Equal in all rows: {', '.join(same)}.", kind="note")
    yield Table(
        title="All cases",
        columns=columns,
        rows=tuple(rows),
        cases={(place, 0): case_key(row) for place, row in enumerate(known)},
        failed=frozenset(
            (place, columns.index("status"))
            for place, row in enumerate(known)
            if row["status"] != "ok"
        ),
        tools=True,
    )
    yield Table(
        title="The command that measures each case again: it alone, under the same plan and limits",
        columns=("case", *(["run"] if len(meta) > 1 else []), "command"),
        rows=tuple(
            (row["case"], *([row["run"]] if len(meta) > 1 else []), command(row, meta[row["run"]]))
            for row in known
        ),
        cases={(place, 0): case_key(row) for place, row in enumerate(known)},
        folded=True,
    )
    if len(frame) > MOST_ROWS:
        yield Text(
            text=f"The first {MOST_ROWS} of {len(frame)} cases; the command export gives them all.",
            kind="note",
        )
