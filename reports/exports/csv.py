"""Comma-separated values, for spreadsheets; cells that look like formulas are made text."""

import csv
import re
from collections.abc import Sequence
from io import StringIO
from typing import Any

from ...harness.files.printable import visible
from ..data.read import Run
from . import Exported
from ._tidy import tidy

MEANING = "a table for spreadsheets"


def export(runs: Sequence[Run]) -> Exported:
    columns, rows = tidy(runs)
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(_cell, columns))
    writer.writerows(map(_cell, row.values()) for row in rows)
    return Exported(content=text.getvalue())


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return value
    # A spreadsheet takes such a cell for a formula; a quote in front makes it text.
    quote = "'" if re.match(r"\s*[=+\-@＝＋－＠]|[\t\r\n]", value) else ""
    return quote + visible(value)
