"""A run's folder to hand on: run.json and the last row of everything planned."""

import json
from collections.abc import Sequence

from ..data.read import Run
from . import Exported
from ._zipped import zipped

MEANING = "a run's folder to hand on, without logs and telemetry"


def export(runs: Sequence[Run]) -> Exported:
    files = {}
    for run in runs:
        rows = (*run.rows, *run.walls, *run.studies, *run.kernels)
        lines = "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)
        files[f"{run.path.name}/run.json"] = json.dumps(run.meta, indent=1) + "\n"
        files[f"{run.path.name}/rows.jsonl"] = lines
    return Exported(content=zipped(files))
