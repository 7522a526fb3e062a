"""The rows of a run that was attacked, read without attnbench's own reader."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from .outcome import Outcome

Row = dict[str, Any]


def planned(run: Path) -> set[str]:
    meta = json.loads((run / "run.json").read_bytes())
    return {one["case"] for plan in ("cases", "walls", "studies") for one in meta.get(plan) or ()}


def whole_lines(run: Path) -> list[bytes]:
    """The lines of rows.jsonl that end in a newline; none if there is no file."""
    path = run / "rows.jsonl"
    return path.read_bytes().splitlines(keepends=True)[: _ends(path)] if path.exists() else []


def _ends(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def last_statuses(run: Path) -> dict[str, str]:
    return {row["case"]: row["status"] for row in map(json.loads, whole_lines(run))}


def check_rows(run: Path, outcome: Outcome, before: list[bytes] = []) -> None:  # noqa: B006
    """Every planned case has a row that is final, no attempt is there twice, and the file still
    begins with the lines that it had `before`.
    """
    lines = whole_lines(run)
    if lines[: len(before)] != before:
        gone = len([line for line in before if line not in lines])
        outcome.lost += max(gone, 1)
        outcome.wrong.append(f"{gone} rows of before are gone or changed in {run.name}")
    try:
        rows: list[Row] = [json.loads(line) for line in lines]
    except ValueError as error:
        outcome.lost += 1
        outcome.wrong.append(f"a whole line is no JSON: {error}")
        return
    last = {row["case"]: row["status"] for row in rows}
    missing = [case for case in planned(run) if last.get(case, "interrupted") == "interrupted"]
    if missing:
        outcome.lost += len(missing)
        outcome.wrong.append(f"without a final row: {', '.join(missing)}")
    attempts = Counter((row["case"], row["attempt"]) for row in rows)
    twice = [key for key, count in attempts.items() if count > 1]
    if twice:
        outcome.doubled += len(twice)
        outcome.wrong.append(f"twice: {twice}")
    unasked = [row for row in rows if row["case"] not in planned(run)]
    outcome.expect(not unasked, f"{len(unasked)} rows that were not planned")
