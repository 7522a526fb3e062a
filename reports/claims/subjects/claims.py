"""Textbook statements, how each was tested in these runs, and the verdict.

On pages of runs that were made to test claims, or that asked for a study.
"""

from collections.abc import Callable, Sequence

from ...data.row_groups import Row, by
from ...data.run_meta import Meta
from ...elements import ASIDE, Card, Marked, Table, Verdict, table_of
from ...formatting import capital, list_text, plural
from ...quantity import Cell
from ...subjects import ALL_CLAIMS, Subject, testing_claims
from ..claim import Claim, ClaimVerdict, Measured, deciding
from ..ledger import claims_on, measured

TITLE = "Claims"
SECTION = "asked"
APART = True
ORDER = 2
NEEDS = ("work_flops", "peak_bytes", "latency_ms")
OVER_QUESTIONS = ALL_CLAIMS
MOST_SPELLED_OUT = 2  # claims whose evidence fits into a sentence
MOST_NAMED = 8  # backends named in one cell
HOLDS: dict[ClaimVerdict, tuple[Verdict, str, str]] = {
    "supported": ("good", "holds here", "hold here"),
    "refuted": ("bad", "does not hold", "do not hold"),
    "depends": ("mixed", "depends on backend or problem", "depend on backend or problem"),
    "not decided": ("open", "is not decided", "are not decided"),
    "not run": ("open", "was not tested", "were not tested"),
}
VERDICT: dict[str, Callable[[Claim], Cell | Marked]] = {
    "claim": lambda one: one.name,
    "verdict": lambda one: Marked(cell=one.verdict, verdict=HOLDS[one.verdict][0]),
}


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card is about the runs that were made to test claims."""
    testing = {name: run for name, run in meta.items() if testing_claims({name: run})}
    asked = {name: run for name, run in meta.items() if run.get("studies") or name in testing}
    return Subject(
        card=_card([run for some in measured(rows, testing).values() for run in some]),
        blocks=tuple(table(claims_on(runs), of) for of, runs in measured(rows, asked).items()),
        lacking="No claim was tested; attnbench run claims measures what they need.",
    )


def _card(runs: Sequence[Measured]) -> Card | None:
    """One for all runs on all devices, None if nothing was tested."""
    tried = [one for one in claims_on(runs) if one.verdict != "not run"]
    if not tried:
        return None
    few = len(tried) <= MOST_SPELLED_OUT
    told = (
        f'{one.name}, "{one.statement[:-1]}", {HOLDS[one.verdict][1]}: {_deciding(one)}.'
        for one in tried
    )

    def statement(one: Claim) -> str:
        return one.statement if few else f"{one.statement}{ASIDE}{_deciding(one)}"

    return Card(
        title="Verdicts on the claims",
        sentence=" ".join(told) if few else counts_text(tried),
        picture=table_of("Claims that were tested", tried, {**VERDICT, "statement": statement}),
        note="A number inside the range of its claim supports it, one outside refutes it, one whose"
        " interval crosses an end does not decide. Claims has all numbers and ranges.",
        wide=True,
    )


def _deciding(one: Claim) -> str:
    """The first numbers with each verdict that decides; or what was not tested."""
    first = {verdict: f"{of}: {text}" for of, verdict, text in reversed([*one.parts])}
    told = (first[verdict] for verdict in deciding(one.verdict) if verdict in first)
    return "; ".join(told) or one.lacking


def counts_text(claims: Sequence[Claim]) -> str:
    """`Of 18 claims 11 hold here, 4 do not hold and 3 are not decided.`"""
    found = by(claims, lambda one: one.verdict)
    counts = [(len(found[one]), words) for one, (_, *words) in HOLDS.items() if one in found]
    texts = [f"{count} {one if count == 1 else many}" for count, (one, many) in counts]
    return f"Of {plural(len(claims), 'claim')} {list_text(texts)}."


def table(claims: Sequence[Claim], of: str = "") -> Table:
    """`of` says in the title where they hold. A number inside the range supports, one outside
    refutes, and one whose interval crosses an end does not decide.
    """
    return table_of(
        f"{counts_text(claims)[:-1]}{of}",
        sorted(claims, key=lambda one: one.verdict == "not run"),
        {
            **VERDICT,
            "statement": lambda one: one.statement,
            "holds if": lambda one: "; ".join(part.wanted for part in one.quantities),
            "in detail": _parts,
        },
    )


def _parts(one: Claim) -> str:
    """`fused refuted: 64 bytes per N² with 8 heads, 8 with one. sdpa supported: ...`, and what was
    not tested. What has the verdict of the claim comes first, since some only are named.
    """
    parts = sorted(one.parts, key=lambda part: part[1] != one.verdict)
    texts = [f"{of} {verdict}: {text}" for of, verdict, text in parts[:MOST_NAMED]]
    texts += [f"{len(parts) - MOST_NAMED} more"] if len(parts) > MOST_NAMED else []
    return ". ".join(filter(None, (*texts, capital(one.lacking)))) + "."
