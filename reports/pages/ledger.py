"""The claims ledger of several runs together, for the terminal and for other programs."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from ..analysis.claims.ledger import Claim, ledger, tally, together
from ..comparison.environments import apart
from ..data.load import frame, read_run, told
from ..data.row_groups import records
from ..sections.claims import tables
from .terminal import rendered

SCHEMA = 1


def ledger_of(run_paths: Sequence[str | Path]) -> list[Claim]:
    """Every claim once. Raises BadRun."""
    runs = [read_run(path) for path in run_paths]
    rows, meta = records(frame(runs)), told(runs)
    ledgers = []
    for name, run in meta.items():
        by_environment = apart([row for row in rows if row["run"] == name]) or {None: []}
        ledgers += [ledger(some, run) for some in by_environment.values()]
    return together(ledgers)


def printed(claims: list[Claim]) -> Iterator[RenderableType]:
    for table in tables(claims):
        yield from rendered(table)
    yield f"{tally(claims)}."


def as_json(claims: Sequence[Claim]) -> str:
    """docs/format.md says what stands in it."""
    said: list[dict[str, Any]] = [
        {
            "id": claim.id,
            "statement": claim.statement,
            "tested_by": claim.tested,
            "verdict": claim.verdict,
            "parts": [
                {"of": part.of, "verdict": part.verdict, "numbers": part.numbers}
                for part in claim.parts
            ],
            "needs": claim.to_run if claim.verdict == "not run" else None,
            "reason": claim.open_because or None,
        }
        for claim in claims
    ]
    return json.dumps({"schema": SCHEMA, "claims": said}, indent=2, ensure_ascii=False)
