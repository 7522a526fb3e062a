"""Where the bytes of a call are: inputs, output, temporaries; and whether all counts agree."""

from collections.abc import Callable, Iterator

import pandas as pd

from ..analysis.memory import disagreement, kept_finding, kept_text, other_peaks
from ..data.memory_need import clearly_outside_bytes
from ..data.row_groups import (
    Row,
    axis_title,
    backends,
    distinguishing_axes,
    groups,
    records,
    value_text,
)
from ..data.run_meta import Meta
from ..elements import Block, Table, Text, note
from ..formatting import bytes_text, list_text, plural

TITLE = "Memory of a call"
ORDER = 25
NEEDS = ("peak_bytes", "output_bytes", "predicted_peak_bytes")
MOST_ROWS = 200
MISSING = {
    "peak_bytes": "the peak",
    "workspace_bytes": "what is kept between calls",
    "outside_bytes": "what torch does not count",
}
MEANING = {
    "formula": "the backend's closed formula",
    "meta": "the backend's own code run on the meta device",
    "resident": "the kernel's count of resident pages",
}


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    rows = [
        row for row in records(frame) if row["status"] == "ok" and row.get("peak_bytes") is not None
    ]
    if not rows:
        yield note("No case has measured peak bytes.")
        yield from _kept([row for row in records(frame) if row["status"] == "ok"])
        return
    yield from _agreement(rows)
    yield from _kept(rows)
    split = [row for row in rows if row.get("output_bytes") is not None]
    if split:
        title = "Inputs exist before the call; output and temporaries make up its peak"
        cells = _SPLIT
        if any(row.get("workspace_bytes") is not None for row in split):
            title += "; what is kept between calls and what torch does not count come on top"
            cells = _SPLIT_KEPT
        yield _table(title, split[:MOST_ROWS], cells, folded=True)
    if len(split) > MOST_ROWS:
        yield note(f"The first {MOST_ROWS} of {len(split)} cases; attnbench export has them all.")


def _agreement(rows: list[Row]) -> Iterator[Block]:
    compared = [row for row in rows if other_peaks(row)]
    differing = [row for row in compared if disagreement(row)]
    if compared:
        methods = {other.name for row in compared for other in other_peaks(row)}
        names = ", ".join(text for name, text in MEANING.items() if name in methods)
        count = len(compared)
        agree = "the one case" if count == 1 else f"all {count} cases"
        if differing:
            agree = f"{count - len(differing)} of {plural(count, 'case')}"
        yield Text(text=f"In {agree} the measured peak agrees with every other count: {names}.")
    if alone := len(rows) - len(compared):
        have = "has" if alone == 1 else "have"
        yield note(f"{plural(alone, 'case')} {have} no second number to compare with.")
    if differing:
        title = "Peaks on which the counts disagree"
        yield _table(title, differing[:MOST_ROWS], _COMPARED, folded=False)


def _kept(rows: list[Row]) -> Iterator[Block]:
    """What does not show in the peak of a call."""
    if found := kept_finding(rows):
        yield Text(text=found)
    reasons: dict[str, list[Row]] = {}
    for row in rows:
        for name, reason in (row.get("memory_missing") or {}).items():
            reasons.setdefault(f"{MISSING.get(name, name)}: {reason}", []).append(row)
    for reason, found_rows in reasons.items():
        yield note(f"Not known for {list_text(backends(found_rows))}, {reason}.")


def _outside_text(row: Row) -> str:
    """With a word where it does not come on top."""
    size = row.get("outside_bytes")
    is_noise = size and not clearly_outside_bytes(row)
    return f"{bytes_text(size)}{' (noise)' if is_noise else ''}" or "not known"


_SPLIT: dict[str, Callable[[Row], str]] = {
    "inputs": lambda row: bytes_text(row.get("input_bytes")),
    "output": lambda row: bytes_text(row.get("output_bytes")),
    "temporaries": lambda row: bytes_text(row.get("temporary_bytes")),
    "peak": lambda row: bytes_text(row["peak_bytes"]),
    "minimal traffic": lambda row: bytes_text(row.get("minimal_bytes")),
}
_SPLIT_KEPT: dict[str, Callable[[Row], str]] = {
    **{name: cell for name, cell in _SPLIT.items() if name != "minimal traffic"},
    "inputs": lambda row: (
        bytes_text(row.get("input_bytes")) + (", with the mask" if row["mask"] == "random" else "")
    ),
    "kept between calls": kept_text,
    "outside torch": _outside_text,
    "peak, kept and outside": lambda row: bytes_text(row.get("needed_bytes")),
    "minimal traffic": lambda row: bytes_text(row.get("minimal_bytes")),
}
_COMPARED: dict[str, Callable[[Row], str]] = {
    "measured": lambda row: bytes_text(row["peak_bytes"]),
    "formula": lambda row: bytes_text(
        row.get("predicted_peak_bytes") if row.get("predicted_source") != "meta" else None
    ),
    "meta": lambda row: bytes_text(row.get("meta_peak_bytes")),
    "resident": lambda row: bytes_text(row.get("resident_peak_bytes")),
    "difference": disagreement,
}


def _table(
    title: str, rows: list[Row], cells: dict[str, Callable[[Row], str]], *, folded: bool
) -> Table:
    axes = distinguishing_axes(rows)
    lines = [
        (
            *(value_text(axis, group.problem[axis]) for axis in axes),
            row["backend"],
            *(cell(row) for cell in cells.values()),
        )
        for group in groups(rows, None)
        for row in group.rows
    ]
    return Table(
        title=title,
        columns=(*map(axis_title, axes), "backend", *cells),
        rows=tuple(lines),
        folded=folded,
    )
