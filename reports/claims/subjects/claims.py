"""Textbook statements, how each was tested in these runs, and the verdict.

On pages of runs that were made to test claims, or that asked for a study.
"""

from collections.abc import Iterator, Sequence

from ...data.row_groups import Row
from ...data.run_meta import Meta
from ...elements import ASIDE, Block, Card, Table, Text, note
from ...formatting import list_text, plural
from ...subjects import Subject, testing_claims
from ..ledger import Claim, ledgers, merged, tally
from ..verdict import LOOKS, ClaimVerdict

TITLE = "Claims"
ORDER = 22
NEEDS = ("work_flops", "peak_bytes", "latency_ms")
OVER_QUESTIONS = "Which textbook claims about attention hold here?"
MOST_SPELLED_OUT = 2  # claims whose evidence fits into a sentence
MOST_PARTS = 2  # that contradict each other, in a cell of the card
MOST_NAMED = 8  # backends named in one cell
TOGETHER = " Here are all devices and environments together, there each alone."


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card is about the runs that were made to test claims."""
    asked = {name: run for name, run in meta.items() if run.get("studies") or _tests(name, meta)}
    testing = {name: run for name, run in asked.items() if _tests(name, meta)}
    found = ledgers(rows, asked)
    return Subject(
        card=_card(found if testing == asked else ledgers(rows, testing)),
        blocks=tuple(_details(found, len(asked))) if asked else (),
        lacking="No claim was tested; attnbench claims --run RUN looks for what these rows tell.",
    )


def _tests(name: str, meta: Meta) -> bool:
    return testing_claims({name: meta[name]})


def _card(found: dict[str, list[Claim]]) -> Card | None:
    """One for all runs, None if nothing was tested."""
    tested = [claim for claim in merged(list(found.values())) if claim.verdict != "not run"]
    if not tested:
        return None
    return Card(
        title="Verdicts on the claims",
        sentence=_sentence(tested),
        picture=Table(
            title="Claims that were tested",
            columns=("claim", "verdict", "statement"),
            rows=tuple((claim.of.name, claim.verdict, _shown(claim, tested)) for claim in tested),
            verdicts={(place, 1): LOOKS[claim.verdict] for place, claim in enumerate(tested)},
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
        ' "depends" means that backends, problems or rules contradict each other, "inconclusive"'
        " that the intervals do not decide. docs/theory.md describes each test."
    )
    for of, claims in found.items():
        yield Text(text=f"{tally(claims)}{of}.")
        yield from tables(claims, of)


def tables(claims: Sequence[Claim], of: str = "") -> Iterator[Table]:
    """The tested claims, then the others; `of` says in the titles where they hold."""
    if tried := [claim for claim in claims if claim.verdict != "not run"]:
        yield _tested(tried, f"Statements that were tested{of}")
    if left := [claim for claim in claims if claim.verdict == "not run"]:
        yield _not_run(left, f"Statements that were not tested{of}, and what they need")


def _tested(claims: Sequence[Claim], title: str) -> Table:
    rows = tuple(
        (claim.of.name, claim.verdict, claim.of.statement, _parts(claim), claim.of.tested)
        for claim in claims
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
        for part in claim.parts[:MOST_NAMED]
    ]
    more = len(claim.parts) - MOST_NAMED
    return ". ".join(texts + ([f"{more} more"] if more > 0 else [])) + "."


def _not_run(claims: Sequence[Claim], title: str) -> Table:
    rows = tuple(
        (claim.of.name, claim.of.statement, claim.of.needs + (f" ({why})" if why else ""))
        for claim in claims
        for why in [claim.unanswered]
    )
    return Table(title=title, columns=("claim", "statement", "needs"), rows=rows, folded=True)


def _shown(claim: Claim, tested: Sequence[Claim]) -> str:
    """The statement, and beside it what decides it unless the sentence of the card says it."""
    texts = [] if len(tested) <= MOST_SPELLED_OUT else [_deciding(claim)]
    return ASIDE.join([claim.of.statement, *filter(None, texts)])


def _deciding(claim: Claim) -> str:
    """`fused time supported: ...; sdpa time refuted: ...`: the first part of each verdict."""
    first = {part.verdict: part for part in reversed(claim.parts)}
    decide: tuple[ClaimVerdict, ...] = (claim.verdict,)
    if claim.verdict == "depends":
        decide = ("supported", "refuted", "depends")
    texts = []
    for part in [first[verdict] for verdict in decide if verdict in first][:MOST_PARTS]:
        said = "" if part.verdict == claim.verdict else f" {part.verdict}"
        texts.append(f"{part.of}{said}" + (f": {part.numbers}" if part.numbers else ""))
    return "; ".join(texts)


def _sentence(tested: Sequence[Claim]) -> str:
    """Each verdict with its evidence if there are few, else the claims by verdict."""
    if len(tested) <= MOST_SPELLED_OUT:
        return " ".join(_spelled_out(claim) for claim in tested)
    by_verdict: dict[str, list[str]] = {}
    for claim in tested:
        by_verdict.setdefault(claim.verdict, []).append(claim.of.name)
    texts = [
        f"{verdict} {list_text(by_verdict[verdict])}" for verdict in LOOKS if verdict in by_verdict
    ]
    return f"{plural(len(tested), 'claim')} tested: {'; '.join(texts)}."


def _spelled_out(claim: Claim) -> str:
    """`C14, "Removing heads saves cost in proportion", depends: fused time supported: ...`."""
    statement = claim.of.statement.split(". (")[0].rstrip(".")
    verb = "depends" if claim.verdict == "depends" else f"is {claim.verdict}"
    return f'{claim.of.name}, "{statement}", {verb}: {_deciding(claim)}.'
