"""A claim: a quantity of some cases, and the range of it that counts as holding.

The verdict comes from the interval: inside the range supports, outside refutes, across does not
decide.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..data.exactness import is_exact
from ..data.row_groups import AXES, Row, by, family
from ..formatting import number_text
from ..judging.over import cases_of

if TYPE_CHECKING:
    import pandas as pd

ClaimVerdict = Literal["supported", "refuted", "depends", "not decided", "not run"]
HIDDEN = ": other costs may hide more, and a longer or wider one would tell"


class Found(NamedTuple):
    """A quantity of one backend on one problem, with its interval; a count's has no width.

    `column`: what was measured. `doubt`: why it decides nothing, "" if it may. `most`: what it may
    still be beyond the interval, if fixed costs hide it; None if they cannot.
    """

    backend: str
    column: str
    low: float
    high: float
    text: str
    doubt: str = ""
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """`where`: the cases that it is about, as a query of the frame of cases. `answer` finds the
    `columns` of them; each must be `within` the range.
    """

    name: str
    statement: str
    quantity: str
    within: tuple[float, float]
    where: str
    answer: Callable[[Sequence[Row], str], Iterable[Found]]
    columns: Sequence[str]

    def verdict(self, found: Found) -> ClaimVerdict:
        """Bounds that are not known are NaN and decide nothing."""
        low, high = self.within
        if low <= found.low and found.high <= high:
            return "not decided" if found.doubt else "supported"
        most = found.high if found.most is None else found.most
        is_outside = found.low > high or most < low
        return "refuted" if is_outside and not found.doubt else "not decided"

    def text(self, found: Found) -> str:
        is_below = found.high < self.within[0] and self.verdict(found) == "not decided"
        return found.text + (found.doubt or HIDDEN * is_below)

    @property
    def wanted(self) -> str:
        """`bytes over those of one head: 0 to 1.05`."""
        low, high = map(number_text, self.within)
        if low == high:
            return f"{self.quantity}: {low}"
        return f"{self.quantity}: " + (f"{low} to {high}" if high else f"above {low}")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A claim, and all that was found of it."""

    claim: Claim
    found: Sequence[Found]

    @property
    def verdict(self) -> ClaimVerdict:
        """One column that fails refutes the claim, one that is open or lacks leaves it not
        decided.
        """
        judged = [(one.column, self.claim.verdict(one)) for one in self.found]
        each = {
            agreed(verdict for of, verdict in judged if of == column)
            for column in self.claim.columns
        }
        if "refuted" in each or len(each) == 1:
            return "refuted" if "refuted" in each else each.pop()
        return "depends" if "depends" in each else "not decided"

    @property
    def parts(self) -> Iterator[tuple[str, ClaimVerdict, str]]:
        """Whose quantity it is, the verdict there, and the last numbers with that verdict; of many
        problems how many have each.
        """
        for (backend, _), some in by(self.found, lambda one: (one.backend, one.column)).items():
            last = {self.claim.verdict(one): self.claim.text(one) for one in some}
            verdict = agreed(last)
            text = "; ".join(last[one] for one in deciding(verdict) if one in last)
            counts = Counter(map(self.claim.verdict, some))
            every = ", ".join(f"{count} {one}" for one, count in counts.items())
            yield backend, verdict, text + (f"; in all {every}" if len(some) > 1 else "")


def outcomes(claims: Iterable[Claim], rows: Sequence[Row]) -> list[Outcome]:
    """Those that rows of one device say something of. Only rows of the same run are compared."""
    if not rows:
        return []
    cases = frame_of(rows)
    each = [(one, cases.query(one.where, engine="python")["row"].tolist()) for one in claims]
    found = [Outcome(one, [*found_of(one, mine)]) for one, mine in each if mine]
    return [one for one in found if one.found]


def found_of(claim: Claim, rows: Sequence[Row]) -> Iterator[Found]:
    for column in claim.columns:
        yield from claim.answer(rows, column)


def frame_of(rows: Sequence[Row]) -> "pd.DataFrame":
    """The cases that claims select: their axes and `backend`, `family` (`linformer` of
    `linformer:64`) and whether it is `exact` attention.
    """
    more = {"family": [family(row["backend"]) for row in rows], "exact": [*map(is_exact, rows)]}
    return cases_of(rows, ["backend", *AXES], **more)


def agreed(verdicts: Iterable[ClaimVerdict]) -> ClaimVerdict:
    """Of a general statement, by problems, backends and runs: "depends" if they contradict each
    other, else "refuted" if one refutes it, else "not decided" if one is.
    """
    found = set(verdicts)
    if {"supported", "refuted"} <= found:
        return "depends"
    order: tuple[ClaimVerdict, ...] = ("refuted", "not decided", "supported")
    return next((one for one in order if one in found), "not run")


def deciding(verdict: ClaimVerdict) -> tuple[ClaimVerdict, ...]:
    """The verdicts whose numbers say why it is this one."""
    return ("supported", "refuted") if verdict == "depends" else (verdict,)
