"""The claims ledger: textbook statements, how each was tested in this run, and the verdict."""

from collections.abc import Iterator, Sequence

import pandas as pd

from ..analysis.claims.claim_verdict import LOOKS
from ..analysis.claims.ledger import Claim, ledgers, tally
from ..data.row_groups import records
from ..data.run_meta import Meta
from ..elements import Block, Table, Text, note

TITLE = "Claims"
ORDER = 48
NEEDS = ("work_flops", "peak_bytes", "latency_ms")
MOST_PARTS = 8  # backends named in one cell


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    here = "this run" if len(meta) == 1 else "these runs"
    yield note(
        f"Every verdict comes from an interval or from exact bytes or FLOPs, and holds for {here}."
        ' "depends" means that backends, problems or rules contradict each other, "inconclusive"'
        " that the intervals do not decide. docs/theory.md describes each test."
    )
    for of, claims in ledgers(records(frame), meta).items():
        yield Text(text=f"{tally(claims)}{of}.")
        yield from tables(claims, of)
    if not meta:
        yield note("No run, no claims.")


def tables(claims: Sequence[Claim], of: str = "") -> Iterator[Table]:
    """The tested claims, then the others; `of` says in the titles where they hold."""
    if tried := [claim for claim in claims if claim.verdict != "not run"]:
        yield _tested(tried, f"Statements that were tested{of}")
    if left := [claim for claim in claims if claim.verdict == "not run"]:
        yield _not_run(left, f"Statements that were not tested{of}, and what they need")


def _tested(claims: Sequence[Claim], title: str) -> Table:
    rows = tuple(
        (claim.id, claim.verdict, claim.statement, _parts(claim), claim.tested) for claim in claims
    )
    return Table(
        title=title,
        columns=("claim", "verdict", "statement", "in detail", "tested by"),
        rows=rows,
        verdicts={(place, 1): LOOKS[claim.verdict] for place, claim in enumerate(claims)},
    )


def _parts(claim: Claim) -> str:
    """`fused refuted: 64 bytes per N² with 8 heads, 8 with one. sdpa supported: ...`."""
    texts = [
        f"{part.of} {part.verdict}" + (f": {part.numbers}" if part.numbers else "")
        for part in claim.parts[:MOST_PARTS]
    ]
    more = len(claim.parts) - MOST_PARTS
    return ". ".join(texts + ([f"{more} more"] if more > 0 else [])) + "."


def _not_run(claims: Sequence[Claim], title: str) -> Table:
    rows = tuple(
        (claim.id, claim.statement, claim.to_run + (f" ({why})" if why else ""))
        for claim in claims
        for why in [claim.unanswered]
    )
    return Table(title=title, columns=("claim", "statement", "needs"), rows=rows, folded=True)
