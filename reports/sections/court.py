"""A court's backends: how each ended, why, and the bytes of those that have a result."""

from collections.abc import Iterator

import pandas as pd

from ..analysis import court
from ..data.row_groups import case_key, records
from ..data.run_meta import Meta
from ..elements import Block, Table, note
from ..formatting import STATUS_WORDS, bytes_text

TITLE = "Backends of the court"
ORDER = 11
NEEDS = ("status", "reason")
ABOUT = ("court",)
BYTES = {"peak": "peak_bytes", "kept": "workspace_bytes", "outside torch": "outside_bytes"}


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    tried = court.suspects(records(frame), meta)
    if not tried:
        yield note("No backend was tried.")
        return
    yield Table(
        title="How each backend ended, and the bytes of those that have a result",
        columns=("backend", "ended", "reason", *BYTES),
        rows=tuple(
            (
                row["backend"],
                STATUS_WORDS[row["status"]],
                row["reason"],
                *(bytes_text(row.get(name)) for name in BYTES.values()),
            )
            for row in tried
        ),
        cases={(place, 0): case_key(row) for place, row in enumerate(tried)},
    )
