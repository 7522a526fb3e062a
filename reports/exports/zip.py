"""A run's folder to hand on: run.json and the last row of everything planned."""

import json
from collections.abc import Sequence
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

from ..data.read import Run
from . import Exported

MEANING = "a run's folder to hand on, without logs and telemetry"


def export(runs: Sequence[Run]) -> Exported:
    packed = BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as file:
        for run in runs:
            rows = (*run.rows, *run.walls, *run.studies, *run.kernels)
            lines = "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)
            file.writestr(f"{run.path.name}/run.json", json.dumps(run.meta, indent=1) + "\n")
            file.writestr(f"{run.path.name}/rows.jsonl", lines)
    return Exported(content=packed.getvalue())
