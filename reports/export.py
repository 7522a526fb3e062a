"""The tidy table as text for other programs (csv, json) and for people (md); names and reasons stay inert in each."""

import csv
import json
import re
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any, Literal

from .analysis.problems import Row, records
from .analysis.rows import readable
from .load import NESTED_COLUMNS, load
from .words import visible

Format = Literal["csv", "json", "md"]


def export(run: str | Path | Sequence[str | Path], format: Format) -> str:  # noqa: A002 - as the command's option
    """One row per planned case; raw samples and logs stay in the run's folder. Raises BadRun."""
    writers = {"csv": _csv, "json": _json, "md": _md}
    if format not in writers:
        raise ValueError(f"no format {format!r}; there are: {', '.join(writers)}")
    frame = load(run).drop(columns=[*NESTED_COLUMNS, "log_tail"])
    return writers[format](list(frame.columns), records(frame))


def _csv(columns: list[str], rows: list[Row]) -> str:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_csv_cell(column) for column in columns])
    writer.writerows([_csv_cell(row[column]) for column in columns] for row in rows)
    return text.getvalue()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return value
    # A spreadsheet takes a cell that begins so for a formula; a quote in front makes it text.
    return f"'{visible(value)}" if re.match(r"\s*[=+\-@＝＋－＠]|[\t\r\n]", value) else visible(value)


def _json(columns: list[str], rows: list[Row]) -> str:
    lines = [json.dumps({column: row[column] for column in columns}, allow_nan=False) for row in rows]
    return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"


def _md(columns: list[str], rows: list[Row]) -> str:
    same, names, cells = readable(rows)
    said = [f"Equal in all rows: {markdown_cell(', '.join(same))}."] if same else []
    table = [tuple(map(markdown_cell, names)), ("---",) * len(names)]
    lines = ["| " + " | ".join(line) + " |" for line in (*table, *(tuple(map(markdown_cell, row)) for row in cells))]
    return "\n".join([*said, *([""] if said else []), *lines]) + "\n"


def markdown_cell(text: str) -> str:
    entities = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
    return re.sub(r"[\\`*_\[\]|~$]", r"\\\g<0>", re.sub("[&<>@]", lambda found: entities[found.group()], visible(text)))
