"""The claims ledger of several runs together, for the terminal and as JSON."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import RenderableType

from ..claims.ledger import Claim, first_of, ledgers, merged
from ..claims.subjects.claims import statements_text, tables
from ..formatting import capital
from .report import Report
from .terminal_blocks import render_block, safe

SCHEMA = 1


def claims_of(report: Report) -> list[Claim]:
    """Every claim once, over all runs and environments."""
    return merged(list(ledgers(report.rows, report.meta).values()))


def render(claims: Sequence[Claim]) -> Iterator[RenderableType]:
    """Tables, studies that found nothing and the tally, for the terminal."""
    for table in tables(claims):
        yield from render_block(table)
    reasons = list(dict.fromkeys(reason for claim in claims for reason in claim.unanswered))
    yield from (f"[yellow]{safe(capital(reason))}.[/]" for reason in first_of(reasons))
    yield f"{statements_text(claims)}."


def document(claims: Sequence[Claim]) -> dict[str, Any]:
    """As docs/format.md describes it."""
    documents = [
        {
            "id": claim.of.name,
            "statement": claim.of.statement,
            "tested_by": claim.of.tested,
            "verdict": claim.verdict,
            "parts": [part._asdict() for part in claim.parts],
            "needs": claim.of.needs if claim.verdict == "not run" else None,
            "missing": list(claim.of.missing(claim.parts)),
            "reason": "; ".join(claim.unanswered) or None,
        }
        for claim in claims
    ]
    return {"schema": SCHEMA, "claims": documents}
