"""Where the bytes of a call are: inputs, output, temporaries; and whether the ways of counting them
agree.
"""

from collections.abc import Callable, Iterator

import pandas as pd

from ..analysis.memory import disagreement, others
from ..data.run_meta import Meta
from ..data.row_groups import Row, axis_title, groups, records, value_text, varying_axes
from ..elements import Block, Table, Text
from ..formatting import bytes_text, plural

TITLE = "Memory of a call"
ORDER = 25
NEEDS = ("peak_bytes", "output_bytes", "predicted_peak_bytes")
MOST_ROWS = 200
MEANING = {
    "formula": "the backend's closed formula",
    "meta": "the backend's own code followed on the meta device",
    "resident": "the kernel's count of resident pages",
}


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    rows = [
        row for row in records(frame) if row["status"] == "ok" and row.get("peak_bytes") is not None
    ]
    if not rows:
        yield Text(text="No case was measured and weighed.", kind="note")
        return
    yield from _agreement(rows)
    split = [row for row in rows if row.get("output_bytes") is not None]
    if split:
        yield _table(
            "Inputs stand before the call; output and temporaries make up its peak",
            split[:MOST_ROWS],
            _SPLIT,
            folded=True,
        )
    if len(split) > MOST_ROWS:
        yield Text(
            text=(
                f"The first {MOST_ROWS} of {len(split)} weighed cases; the command export gives"
                " them all."
            ),
            kind="note",
        )


def _agreement(rows: list[Row]) -> Iterator[Block]:
    compared = [row for row in rows if others(row)]
    differing = [row for row in compared if disagreement(row)]
    if compared:
        ways = {other.name for row in compared for other in others(row)}
        said = ", ".join(text for name, text in MEANING.items() if name in ways)
        agree = (
            f"{len(compared) - len(differing)} of {plural(len(compared), 'case')}"
            if differing
            else _all(len(compared))
        )
        yield Text(
            text=(
                f"In {agree} the measured peak agrees with all that it can be held against: {said}."
            )
        )
    if alone := len(rows) - len(compared):
        yield Text(
            text=(
                f"{plural(alone, 'case')} {'has' if alone == 1 else 'have'} no second number to"
                " compare with."
            ),
            kind="note",
        )
    if differing:
        yield _table(
            "Peaks on which the ways of counting disagree",
            differing[:MOST_ROWS],
            _COMPARED,
            folded=False,
        )


def _all(count: int) -> str:
    return "the one case" if count == 1 else f"all {count} cases"


_SPLIT: dict[str, Callable[[Row], str]] = {
    "inputs": lambda row: bytes_text(row.get("input_bytes")),
    "output": lambda row: bytes_text(row.get("output_bytes")),
    "temporaries": lambda row: bytes_text(row.get("temporary_bytes")),
    "peak": lambda row: bytes_text(row["peak_bytes"]),
    "moves at least": lambda row: bytes_text(row.get("minimal_bytes")),
}
_COMPARED: dict[str, Callable[[Row], str]] = {
    "measured": lambda row: bytes_text(row["peak_bytes"]),
    "formula": lambda row: bytes_text(
        row.get("predicted_peak_bytes") if row.get("predicted_source") != "meta" else None
    ),
    "meta": lambda row: bytes_text(row.get("meta_peak_bytes")),
    "resident": lambda row: bytes_text(row.get("resident_peak_bytes")),
    "what differs": disagreement,
}


def _table(
    title: str, rows: list[Row], cells: dict[str, Callable[[Row], str]], *, folded: bool
) -> Table:
    problems = groups(rows, None)
    axes = varying_axes([group.problem for group in problems]) or ["seq_len"]
    lines = [
        (
            *(value_text(axis, group.problem[axis]) for axis in axes),
            row["backend"],
            *(cell(row) for cell in cells.values()),
        )
        for group in problems
        for row in group.rows
    ]
    return Table(
        title=title,
        columns=(*map(axis_title, axes), "backend", *cells),
        rows=tuple(lines),
        folded=folded,
    )
