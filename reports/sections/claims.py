"""The claims ledger: what textbooks say, how it was tested here, and the verdict, one line per
statement.
"""

from collections.abc import Iterator

import pandas as pd

from ..analysis.claims.ledger import Claim, ledger, tally
from ..comparison.environments import apart, environments
from ..data.run_meta import Meta
from ..data.row_groups import Row, records
from ..elements import Block, Table, Text

TITLE = "Claims put to the test"
ORDER = 48
NEEDS = ("work_flops", "peak_bytes", "latency_ms")
MOST_PARTS = 8  # backends named in one cell


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    by_run: dict[str, list[Row]] = {name: [] for name in meta}
    for row in records(frame):
        by_run.setdefault(row["run"], []).append(row)
    yield Text(
        text=(
            "Every verdict comes from an interval or from exact bytes or FLOPs. It holds for what"
            ' this run measured: "depends" means that backends, problems or rules contradict each'
            ' other, "inconclusive" that the intervals do not decide. docs/theory.md says how each'
            " is tested."
        ),
        kind="note",
    )
    for name, run in meta.items():
        of_run = f" of {name}" if len(meta) > 1 else ""
        first = next(iter(environments(run)), None)
        for python, rows in apart(by_run[name]).items():
            of = of_run if python is None else f" in {python}{of_run}"
            # Studies are carried out in the first environment alone.
            claims = ledger(
                rows, run if python == first else {**run, "studies": [], "unanswered": []}
            )
            yield Text(text=f"{tally(claims)}{of}.")
            yield from tables(claims, of)
    if not meta:
        yield Text(text="No run, no claims.", kind="note")


def tables(claims: list[Claim], of: str = "") -> Iterator[Table]:
    """What was tested, then what was not; `of` names the run in their titles."""
    if tried := [claim for claim in claims if claim.verdict != "not run"]:
        yield _tested(tried, f"Statements that were tested{of}")
    if left := [claim for claim in claims if claim.verdict == "not run"]:
        yield _not_run(left, f"Statements that were not tested{of}, and what would have to be run")


def _tested(claims: list[Claim], title: str) -> Table:
    rows = tuple(
        (claim.id, claim.verdict, claim.statement, _parts(claim), claim.tested) for claim in claims
    )
    return Table(
        title=title, columns=("claim", "verdict", "statement", "in detail", "tested by"), rows=rows
    )


def _parts(claim: Claim) -> str:
    """`fused refuted: 64 bytes per N² with 8 heads, 8 with one. sdpa supported: ...`"""
    said = [
        f"{part.of} {part.verdict}" + (f": {part.numbers}" if part.numbers else "")
        for part in claim.parts[:MOST_PARTS]
    ]
    more = len(claim.parts) - MOST_PARTS
    return ". ".join(said + ([f"{more} more"] if more > 0 else [])) + "."


def _not_run(claims: list[Claim], title: str) -> Table:
    rows = tuple(
        (
            claim.id,
            claim.statement,
            f"{claim.to_run}" + (f" ({claim.open_because})" if claim.open_because else ""),
        )
        for claim in claims
    )
    return Table(title=title, columns=("claim", "statement", "needs"), rows=rows, folded=True)
