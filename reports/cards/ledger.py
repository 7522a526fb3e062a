"""The verdicts on the claims that a run was made to test."""

from collections.abc import Sequence

import pandas as pd

from ..analysis.claims.claim_verdict import LOOKS, ClaimVerdict
from ..analysis.claims.ledger import Claim, ledgers, merged
from ..data.row_groups import records
from ..data.run_meta import Meta
from ..elements import ASIDE, Card, Table
from ..formatting import list_text, plural
from ..subjects._over import tests_claims

ORDER = 22
OVER_QUESTIONS = "Which textbook claims about attention hold here?"
MOST_SPELLED_OUT = 2  # claims whose evidence fits into a sentence
MOST_PARTS = 2  # that contradict each other
TOGETHER = " Here are all devices and environments together, there each alone."


def card(frame: pd.DataFrame, meta: Meta) -> Card | None:
    """Of the runs that were made to test claims; one card for all of them."""
    testing = {name: run for name, run in meta.items() if tests_claims({name: run})}
    found = ledgers(records(frame), testing)
    tested = [claim for claim in merged(list(found.values())) if claim.verdict != "not run"]
    if not tested:
        return None
    return Card(
        name="claims",
        title="Verdicts on the claims",
        sentence=_sentence(tested),
        picture=Table(
            title="Claims that were tested",
            columns=("claim", "verdict", "statement"),
            rows=tuple((claim.id, claim.verdict, _shown(claim, tested)) for claim in tested),
            verdicts={(place, 1): LOOKS[claim.verdict] for place, claim in enumerate(tested)},
        ),
        note=(
            "A verdict comes from an interval, or from exact bytes or FLOPs. Claims has all"
            " numbers, and what other claims need." + (TOGETHER if len(found) > 1 else "")
        ),
        wide=True,
    )


def _shown(claim: Claim, tested: Sequence[Claim]) -> str:
    """The statement, and beside it what decides it unless the sentence of the card says it.

    `Removing heads saves cost in proportion. · fused time supported: ...; sdpa time refuted: ...`.
    """
    if len(tested) <= MOST_SPELLED_OUT:
        return claim.statement
    first = {part.verdict: part for part in reversed(claim.parts)}
    deciding: tuple[ClaimVerdict, ...] = (claim.verdict,)
    if claim.verdict == "depends":
        deciding = ("supported", "refuted", "depends")
    texts = []
    for part in [first[verdict] for verdict in deciding if verdict in first][:MOST_PARTS]:
        said = "" if part.verdict == claim.verdict else f" {part.verdict}"
        texts.append(f"{part.of}{said}" + (f": {part.numbers}" if part.numbers else ""))
    return ASIDE.join([claim.statement, "; ".join(texts)]) if texts else claim.statement


def _sentence(tested: Sequence[Claim]) -> str:
    """Each verdict with its evidence if there are few, else the claims by verdict."""
    if len(tested) <= MOST_SPELLED_OUT:
        return " ".join(_spelled_out(claim) for claim in tested)
    by_verdict: dict[str, list[str]] = {}
    for claim in tested:
        by_verdict.setdefault(claim.verdict, []).append(claim.id)
    texts = [
        f"{verdict} {list_text(by_verdict[verdict])}" for verdict in LOOKS if verdict in by_verdict
    ]
    return f"{plural(len(tested), 'claim')} tested: {'; '.join(texts)}."


def _spelled_out(claim: Claim) -> str:
    """`C14, "Removing heads saves cost in proportion", depends: supported for fused bytes (...)`.

    By verdict, with the numbers of the first part; those that decide nothing only if no other does.
    """
    statement = claim.statement.split(". (")[0].rstrip(".")
    alone = {part.verdict for part in claim.parts} == {claim.verdict}
    texts: list[str] = []
    for verdict in LOOKS:
        parts = [part for part in claim.parts if part.verdict == verdict]
        if not parts:
            continue
        names = list_text([part.of.replace(", ", " ") for part in parts])
        said = verdict != "inconclusive" or not texts
        numbers = f" ({parts[0].numbers})" if said and parts[0].numbers else ""
        texts.append(f"{'' if alone else f'{verdict} '}for {names}{numbers}")
    verb = "depends" if claim.verdict == "depends" else f"is {claim.verdict}"
    colon = "" if alone else ":"
    return f'{claim.id}, "{statement}", {verb}{colon} {"; ".join(texts)}.'
