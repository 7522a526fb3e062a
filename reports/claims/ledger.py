"""The claims ledger: textbook statements on multi-head attention, with tests and verdicts.

docs/theory.md describes each test.
A verdict comes from an interval, or from exact bytes or FLOPs. A claim that the run does not test
is `not run`, with what it needs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..data.row_groups import Row
from ..data.run_meta import Meta, device_name, found_nothing
from ..formatting import in_brackets
from .statement import Measured, Statement, statements
from .verdict import ClaimVerdict, Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One line of the ledger.

    `parts`: its verdicts by backend; `unanswered`: why studies that it reads found nothing, or
    parts of them.
    """

    of: Statement
    parts: tuple[Evidence, ...]
    unanswered: tuple[str, ...]

    @property
    def verdict(self) -> ClaimVerdict:
        return self.of.verdict(self.parts)

    @property
    def lacking(self) -> str:
        """`not tested: a recurrent layer (study-x-gru found nothing: timeout)`, or "". Of a claim
        that was not run although its numbers are there, these: they say what is wrong with them.
        """
        if self.verdict == "not run" and self.parts:
            return "; ".join(part.numbers for part in self.parts[:MOST_NAMED])
        missing = self.of.missing(self.parts)
        named = f"not tested: {', '.join(missing)}" if missing else ""
        reasons = "; ".join(first_of(self.unanswered))
        return named + in_brackets(reasons) if named else reasons


STATEMENTS = statements()
MOST_NAMED = 3


def first_of(reasons: Sequence[str]) -> list[str]:
    """Why studies found nothing; of many, how many more there are."""
    more = len(reasons) - MOST_NAMED
    return [*reasons[:MOST_NAMED], *([f"{more} more found nothing"] if more > 0 else [])]


def ledger(rows: Sequence[Row], run: Mapping[str, Any]) -> list[Claim]:
    """Every claim once, for the rows of one run and the findings of its studies."""
    measured = Measured(every=rows, studies=run.get("studies"))
    return [
        Claim(of=one, parts=one.parts(measured), unanswered=(*found_nothing(run, one.studies),))
        for one in STATEMENTS.values()
    ]


def ledgers(rows: Sequence[Row], meta: Meta) -> dict[str, list[Claim]]:
    """The ledger of each kind of device, over all runs there.

    By what it is about, for titles: ` on AMD EPYC (cpu)`; of a lone one, "".
    """
    found: dict[str, list[list[Claim]]] = {}
    for name, run in meta.items():
        mine = [row for row in rows if row["run"] == name]
        found.setdefault(device_name(run), []).append(ledger(mine, run))
    several = len(found) > 1
    return {f" on {device}" if several else "": merged(some) for device, some in found.items()}


def merged(ledgers: Sequence[Sequence[Claim]]) -> list[Claim]:
    """The ledgers of several runs as one, with the parts of all runs."""
    claims = []
    for same in zip(*ledgers, strict=True):
        parts = tuple(part for claim in same for part in claim.parts)
        why = dict.fromkeys(reason for claim in same for reason in claim.unanswered)
        claims.append(Claim(of=same[0].of, parts=parts, unanswered=tuple(why)))
    return claims
