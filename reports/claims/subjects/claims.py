"""Textbook statements, what was measured of each, and whether it holds here.

On pages of runs that were made to test claims. Those of which the runs say nothing are not shown.
"""

from collections.abc import Callable, Mapping, Sequence

from ...data.row_groups import Row, by
from ...data.run_meta import Meta, device_name
from ...elements import ASIDE, Card, Marked, Table, Verdict, table_of
from ...formatting import capital, list_text, plural
from ...quantity import Cell
from ...subjects import ALL_CLAIMS, Subject, testing_claims
from ..claim import ClaimVerdict, Outcome, deciding, outcomes
from ..ledger import CLAIMS

TITLE = "Claims"
SECTION = "asked"
APART = True
ORDER = 2
OVER_QUESTIONS = ALL_CLAIMS
MOST_NAMED = 8  # quantities in one cell
MOST_TOLD = 3  # claims of one sentence
HOLDS: Mapping[ClaimVerdict, tuple[Verdict, str, str]] = {
    "supported": ("good", "holds here", "hold here"),
    "refuted": ("bad", "does not hold", "do not hold"),
    "depends": ("mixed", "depends on backend or problem", "depend on backend or problem"),
    "not decided": ("open", "is not decided", "are not decided"),
}
VERDICT: Mapping[str, Callable[[Outcome], Cell | Marked]] = {
    "claim": lambda one: one.claim.name,
    "holds here": lambda one: Marked(cell=one.verdict, verdict=HOLDS[one.verdict][0]),
}
HOW = (
    "A number inside the range supports its claim, a number outside refutes it, and an interval"
    " across an end decides nothing."
)


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card is about the runs that were made to test claims."""
    testing = {name for name, run in meta.items() if testing_claims({name: run})}
    tested = by_device([row for row in rows if row["run"] in testing], meta)
    of, some = next(iter(tested.items()), ("", []))
    card = Card(
        title="Verdicts on the claims",
        sentence=_each(some) if 0 < len(some) <= MOST_TOLD else f"{counted(some)}{of}.",
        picture=table_of("Claims that were tested", some, {**VERDICT, "statement": _in_short}),
        note=f"{HOW} Claims has all numbers and ranges.",
        wide=True,
    )
    return Subject(
        card=card if some else None,
        blocks=tuple(table(*one) for one in tested.items()),
        lacking="No claim was tested; `attnbench run claims` measures what they need.",
    )


def by_device(rows: Sequence[Row], meta: Meta) -> dict[str, list[Outcome]]:
    """What was tested on each kind of device, by what titles say of it; a lone one is ""."""
    names = {name: device_name(run) for name, run in meta.items()}
    found = by(rows, lambda row: names[row["run"]])
    each = {of: outcomes(CLAIMS, some) for of, some in found.items()}
    return {f" on {of}" if len(found) > 1 else "": some for of, some in each.items() if some}


def _each(found: Sequence[Outcome]) -> str:
    """`Does not hold: h heads of width d/h take the time of one head of width d.`"""
    return " ".join(
        f"{capital(HOLDS[one.verdict][1].removeprefix('is '))}: {one.claim.statement}"
        for one in found
    )


def counted(found: Sequence[Outcome]) -> str:
    """`Of 22 claims 11 hold here, 5 do not hold and 6 are not decided`"""
    counts = by(found, lambda one: one.verdict)
    told = [
        f"{len(counts[one])} {words[len(counts[one]) > 1]}"
        for one, (_, *words) in HOLDS.items()
        if one in counts
    ]
    return f"Of {plural(len(found), 'claim')} {list_text(told)}"


def table(of: str, found: Sequence[Outcome]) -> Table:
    more = {"holds if": lambda one: one.claim.criterion.wanted, "measured": _measured}
    columns = {**VERDICT, "statement": lambda one: one.claim.statement, **more}
    return table_of(f"{counted(found)}{of}", found, columns)


def _in_short(one: Outcome) -> str:
    """The statement, and below it the first numbers with each verdict that decides."""
    first = {verdict: f"{of}: {text}" for of, verdict, text in reversed([*one.parts])}
    told = "; ".join(first[verdict] for verdict in deciding(one.verdict) if verdict in first)
    return f"{one.claim.statement}{ASIDE}{told}"


def _measured(one: Outcome) -> str:
    """`fused refuted: 8.00 times the bytes, 8 heads against one. sdpa supported: ...`. What has the
    verdict of the claim comes first, since some only are named.
    """
    parts = sorted(one.parts, key=lambda part: part[1] != one.verdict)
    texts = [f"{of} {verdict}: {text}" for of, verdict, text in parts[:MOST_NAMED]]
    texts += [f"{len(parts) - MOST_NAMED} more"] if len(parts) > MOST_NAMED else []
    return ". ".join(texts) + "."
