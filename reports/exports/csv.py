"""Comma-separated values, for spreadsheets; cells that look like formulas are made text."""

import csv
import re
from collections.abc import Sequence
from io import StringIO
from typing import Any

from ...harness.files.printable import visible
from ..data.columns import NESTED_COLUMNS
from ..data.load import columns_of, rows_of
from ..data.row_groups import Row
from ..data.run_meta import Run
from . import Exported

MEANING = "a table for spreadsheets"


def export(runs: Sequence[Run]) -> Exported:
    columns, rows = tidy(runs)
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(_cell, columns))
    writer.writerows(map(_cell, row.values()) for row in rows)
    return Exported(content=text.getvalue())


def tidy(runs: Sequence[Run]) -> tuple[list[str], list[Row]]:
    """The columns, without samples and logs, which stay in the run's folder; a row per planned
    case.
    """
    rows = rows_of(runs)
    left_out = (*NESTED_COLUMNS, "log_tail", *(["run"] if len(runs) == 1 else []))
    columns = [name for name in columns_of(rows) if name not in left_out]
    return columns, [{name: row[name] for name in columns} for row in rows]


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return value
    # A spreadsheet takes such a cell for a formula; a quote in front makes it text.
    quote = "'" if re.match(r"\s*[=+\-@＝＋－＠]|[\t\r\n]", value) else ""
    return quote + visible(value)
