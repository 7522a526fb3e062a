"""Textbook statements, how each was tested in these runs, and the verdict.

On pages of runs that were made to test claims, or that asked for a study.
"""

from collections.abc import Callable, Iterator, Sequence

from ...data.row_groups import Row, by
from ...data.run_meta import Meta
from ...elements import ASIDE, Block, Card, Marked, Table, Text, note, table_of
from ...formatting import capital, in_brackets, list_text, plural
from ...quantity import Cell
from ...subjects import Subject, testing_claims
from ..ledger import Claim, ledgers, merged
from ..verdict import LOOKS, tally

TITLE = "Claims"
SECTION = "asked"
PAGE = "claims"
ORDER = 2
NEEDS = ("work_flops", "peak_bytes", "latency_ms")
OVER_QUESTIONS = "Which textbook claims about attention hold here?"
MOST_SPELLED_OUT = 2  # claims whose evidence fits into a sentence
MOST_NAMED = 8  # backends named in one cell
TOGETHER = " Here are all devices together, there each alone."
HOLDS = {
    "supported": ("holds here", "hold here"),
    "refuted": ("does not hold", "do not hold"),
    "depends": ("depends on backend or problem", "depend on backend or problem"),
    "not decided": ("is not decided", "are not decided"),
}
VERDICT: dict[str, Callable[[Claim], Cell | Marked]] = {
    "claim": lambda one: one.of.name,
    "verdict": lambda one: Marked(cell=one.verdict, verdict=LOOKS[one.verdict]),
}


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card is about the runs that were made to test claims."""
    asked = {name: run for name, run in meta.items() if run.get("studies") or _tests(name, meta)}
    testing = {name: run for name, run in asked.items() if _tests(name, meta)}
    found = ledgers(rows, asked)
    return Subject(
        card=_card(found if testing == asked else ledgers(rows, testing)),
        blocks=tuple(_details(found, len(asked))) if asked else (),
        lacking="No claim was tested; attnbench run claims measures what they need.",
    )


def _tests(name: str, meta: Meta) -> bool:
    return testing_claims({name: meta[name]})


def _card(found: dict[str, list[Claim]]) -> Card | None:
    """One for all runs, None if nothing was tested."""
    tested = [claim for claim in merged(list(found.values())) if claim.verdict != "not run"]
    if not tested:
        return None
    few = len(tested) <= MOST_SPELLED_OUT
    return Card(
        title="Verdicts on the claims",
        sentence=" ".join(map(_spelled_out, tested)) if few else _by_verdict(tested),
        picture=table_of(
            "Claims that were tested",
            tested,
            {
                **VERDICT,
                "statement": lambda one: (
                    one.of.statement + ("" if few else f"{ASIDE}{_deciding(one)}")
                ),
            },
        ),
        note=(
            "A verdict comes from an interval, or from exact bytes or FLOPs. Claims has all"
            " numbers, and what other claims need." + (TOGETHER if len(found) > 1 else "")
        ),
        wide=True,
    )


def _details(found: dict[str, list[Claim]], runs: int) -> Iterator[Block]:
    here = "this run" if runs == 1 else "these runs"
    yield note(
        f"Every verdict comes from an interval or from exact bytes or FLOPs, and holds for {here}."
        ' "depends" means that backends, problems or rules contradict each other, "not decided"'
        " that the intervals do not decide. docs/theory.md describes each test."
    )
    for of, claims in found.items():
        yield Text(text=f"{statements_text(claims)}{of}.")
        yield from tables(claims, of)


def statements_text(claims: Sequence[Claim]) -> str:
    """`18 statements: 4 supported, 2 refuted, 1 depends, 2 not decided, 9 not run`."""
    return f"{len(claims)} statements: {tally(claim.verdict for claim in claims)}"


def tables(claims: Sequence[Claim], of: str = "") -> Iterator[Table]:
    """The tested claims, then the others; `of` says in the titles where they hold."""
    if tried := [claim for claim in claims if claim.verdict != "not run"]:
        yield table_of(
            f"Statements that were tested{of}",
            tried,
            {
                **VERDICT,
                "statement": lambda one: one.of.statement,
                "in detail": _parts,
                "tested by": lambda one: one.of.tested,
            },
        )
    if left := [claim for claim in claims if claim.verdict == "not run"]:
        yield table_of(
            f"Statements that were not tested{of}, and what they need",
            left,
            {
                "claim": lambda one: one.of.name,
                "statement": lambda one: one.of.statement,
                "needs": lambda one: one.of.needs + in_brackets(one.lacking),
            },
            folded=True,
        )


def _parts(claim: Claim) -> str:
    """`fused refuted: 64 bytes per N² with 8 heads, 8 with one. sdpa supported: ...`, and what was
    not tested. What has the verdict of the claim comes first, since some only are named.
    """
    parts = sorted(claim.parts, key=lambda part: part.verdict != claim.verdict)
    texts = [f"{part.of} {part.verdict}: {part.numbers}" for part in parts[:MOST_NAMED]]
    more = len(claim.parts) - MOST_NAMED
    texts += [f"{more} more"] if more > 0 else []
    return ". ".join(texts + ([capital(claim.lacking)] if claim.lacking else [])) + "."


def _deciding(claim: Claim) -> str:
    """`fused time supported: ...; sdpa time refuted: ...`: the first part of each verdict; or the
    half that was not tested.
    """
    first = {part.verdict: part for part in reversed(claim.parts)}
    if claim.verdict in first:
        return f"{first[claim.verdict].of}: {first[claim.verdict].numbers}"
    if claim.verdict == "not decided":
        return claim.lacking
    parts = (first["supported"], first["refuted"])
    return "; ".join(f"{part.of} {part.verdict}: {part.numbers}" for part in parts)


def _by_verdict(tested: Sequence[Claim]) -> str:
    """`Of 44 claims 11 hold here, 10 do not hold and 23 are not decided.`"""
    found = by(tested, lambda claim: claim.verdict)
    counts = [(len(found[verdict]), HOLDS[verdict]) for verdict in HOLDS if verdict in found]
    texts = [f"{count} {one if count == 1 else many}" for count, (one, many) in counts]
    return f"Of {plural(len(tested), 'claim')} {list_text(texts)}."


def _spelled_out(claim: Claim) -> str:
    """`C14, "Removing heads saves cost in proportion", depends: fused time supported: ...`."""
    statement = claim.of.statement.split(". (")[0].rstrip(".")
    verb = "depends" if claim.verdict == "depends" else f"is {claim.verdict}"
    return f'{claim.of.name}, "{statement}", {verb}: {_deciding(claim)}.'
