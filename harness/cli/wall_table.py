"""Walls as tables for the terminal: what is foreseen before a run, and what was found."""

from pathlib import Path
from typing import Any

from rich.table import Table

from ..record import Status
from ..store import read_meta, read_rows
from ..terminal import table

COLUMNS = (
    "wall",
    "predicted N",
    "fits up to",
    "fails from",
    "prediction off",
    "limited by",
    "reason",
)


def found_table(path: Path) -> Table | None:
    """The walls of a run, with what came of them; None where it has none."""
    planned = [wall["case"] for wall in read_meta(path).get("walls", ())]
    if not planned:
        return None
    last = {row["case"]: row for row in read_rows(path) if row["kind"] == "wall"}
    cells = [found_cells(last[name]) for name in planned if name in last]
    return table("", COLUMNS, cells, right=COLUMNS[1:5])


def found_cells(row: dict[str, Any]) -> tuple[str, ...]:
    numbers = (
        length_text(row[name]) for name in ("predicted_seq_len", "seq_len_low", "seq_len_high")
    )
    return (
        row["case"].removeprefix("wall-"),
        *numbers,
        off_text(row),
        row["limited_by"] or "",
        why(row),
    )


def length_text(seq_len: int | None) -> str:
    return "-" if seq_len is None else f"{seq_len:,}"


def off_text(row: dict[str, Any]) -> str:
    """How far the prediction lies from the longest N that fits; "" where the search did not get to
    the end of memory.
    """
    predicted, low = row["predicted_seq_len"], row["seq_len_low"]
    return (
        ""
        if predicted is None or not low or row["limited_by"] != "memory"
        else f"{predicted / low - 1:+.2%}"
    )


def why(row: dict[str, Any]) -> str:
    """What the other columns leave open."""
    if row["status"] != Status.OK:
        return f"{row['status']}: {row['reason']}"
    if row["limited_by"] == "backend":
        return next(
            (probe["reason"] for probe in row["probes"] if probe["seq_len"] == row["seq_len_high"]),
            "",
        )
    return str(row["predicted_reason"])


def foreseen_table(title: str, foreseen: list[tuple[str, dict[str, Any]]]) -> Table:
    """Walls by name, with the fields of their rows that need no run."""
    cells = [
        (name, length_text(fields["predicted_seq_len"]), fields["predicted_reason"])
        for name, fields in foreseen
    ]
    return table(
        title,
        ("wall", "predicted_seq_len", "why there is none"),
        cells,
        right=("predicted_seq_len",),
    )
