"""The run quickstart with a row of a study, whatever its findings are."""

import json
from pathlib import Path
from typing import Any

from tests.reports.fake_runs import quickstart


def with_study(
    parent: Path, study: str, findings: list[Any], case: str = "", **changes: Any
) -> Path:
    """`case`: of a part of the study; `changes`: of the row."""
    folder = quickstart(parent)
    named = {"case": case or f"study-{study}", "study": study}
    meta = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(meta | {"studies": [named]}))
    row = {
        "schema": 1,
        "kind": "study",
        **named,
        "attempt": 1,
        "device": "cpu",
        "status": "ok",
        "reason": "",
        "log_tail": None,
        "findings": findings,
        "started_utc": None,
        "spent_s": 1.0,
        **changes,
    }
    with (folder / "rows.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")
    return folder
