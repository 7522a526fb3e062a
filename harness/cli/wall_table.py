"""Walls as tables for the terminal: predicted before a run, and found by it."""

from pathlib import Path
from typing import Any

from ...reports.pages.terminal_table import TerminalTable
from ..rows.record import Status
from ..rows.run_files import read_meta, read_rows
from .tables import table

COLUMNS = (
    *("wall", "predicted N", "fits up to", "fails from", "prediction off", "limited by"),
    "reason",
)


MORE_TIME = "more time: attnbench wall --budget, --timeout; limits.wall_budget_s, limits.timeout_s"


def found_table(path: Path) -> TerminalTable | None:
    """The walls of a run; None if it has none."""
    planned = [wall["case"] for wall in read_meta(path).get("walls", ())]
    if not planned:
        return None
    last = {row["case"]: row for row in read_rows(path) if row["kind"] == "wall"}
    cells = [_cells(last[name]) for name in planned if name in last]
    return table("", COLUMNS, cells, right=COLUMNS[1:5], ids=True)


def predicted_table(title: str, walls: list[tuple[str, dict[str, Any]]]) -> TerminalTable:
    """Walls by name, with the fields of their rows that need no run."""
    columns = ("wall", "predicted N", "why there is none, or whose formula it is")
    cells = [(name, _predicted(fields), fields["predicted_reason"]) for name, fields in walls]
    return table(title, columns, cells, right=columns[1:2], ids=True)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    numbers = (_predicted(row), _number(row["seq_len_low"]), _number(row["seq_len_high"]))
    name, limit = row["case"].removeprefix("wall-"), row["limited_by"] or ""
    return name, *numbers, _prediction_error(row), limit, _reason(row)


def _number(seq_len: int | None) -> str:
    return "-" if seq_len is None else f"{seq_len:,}"


def _predicted(fields: dict[str, Any]) -> str:
    least = ">= " if fields.get("predicted_source") == "nearest" else ""
    return least + _number(fields["predicted_seq_len"])


def _prediction_error(row: dict[str, Any]) -> str:
    """Of the longest N that fits; "" for a bound, and if memory did not end the search."""
    predicted, low = row["predicted_seq_len"], row["seq_len_low"]
    bound = row["predicted_source"] == "nearest"
    if predicted is None or not low or row["limited_by"] != "memory" or bound:
        return ""
    return f"{100 * (predicted / low - 1):+.2f} %"


def _reason(row: dict[str, Any]) -> str:
    if row["status"] != Status.OK:
        return f"{row['status']}: {row['reason']}"
    if row["limited_by"] == "backend":
        trials = (trial for trial in row["probes"] if trial["seq_len"] == row["seq_len_high"])
        return next((trial["reason"] for trial in trials), "")
    if row["limited_by"] == "time":
        return MORE_TIME
    return str(row["predicted_reason"])
