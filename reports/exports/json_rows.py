"""A JSON array with one object per case and line; missing is null."""

import json
from collections.abc import Sequence

from ..data.run_meta import Run
from . import Exported
from .csv import tidy

MEANING = "the rows as an array of objects, for programs"


def export(runs: Sequence[Run]) -> Exported:
    _, rows = tidy(runs)
    lines = [json.dumps(row, allow_nan=False) for row in rows]
    return Exported(content="[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n")
