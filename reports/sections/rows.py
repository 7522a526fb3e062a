"""Every planned case, one row each."""

from collections.abc import Iterator

import pandas as pd

from ..analysis.reproduce import command
from ..analysis.rows import readable
from ..data.row_groups import case_key, records
from ..data.run_meta import Meta
from ..elements import Block, Table, note

TITLE = "All rows"
ORDER = 70
NEEDS = ("case", "status")
ABOUT = ("cases", "court")
ALL_COPIES = True
MOST_ROWS = 2000


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    if frame.empty:
        yield note("The plan has no case.")
        return
    known = records(frame.head(MOST_ROWS))
    same, columns, rows = readable(known)
    if same:
        yield note(f"Equal in all rows: {', '.join(same)}.")
    cases = {(place, 0): case_key(row) for place, row in enumerate(known)}
    yield Table(
        title="All cases",
        columns=columns,
        rows=tuple(rows),
        cases=cases,
        failed=frozenset(
            (place, columns.index("status"))
            for place, row in enumerate(known)
            if row["status"] != "ok"
        ),
        tools=True,
    )
    if any(row.get("python") for row in known):
        yield note(
            "A case whose id ends in the name of an environment is measured again by the attnbench"
            " of that environment."
        )
    several = len(meta) > 1
    yield Table(
        title="Command to measure each case again, alone, under the same plan and limits",
        columns=("case", *(["run"] if several else []), "command"),
        rows=tuple(
            (row["case"], *([row["run"]] if several else []), command(row, meta[row["run"]]))
            for row in known
        ),
        cases=cases,
        folded=True,
    )
    if len(frame) > MOST_ROWS:
        yield note(f"The first {MOST_ROWS} of {len(frame)} cases; attnbench export has them all.")
