"""A claim: quantities of a run, and the range of each that counts as holding.

The verdict comes from the interval: inside the range supports, outside refutes, across does not
decide, and without a number the claim was not run.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

from ...harness.rows.findings import Finding
from ..data.exactness import RECURRENT, is_exact
from ..data.findings import read_findings
from ..data.row_groups import Row, by, family
from ..data.run_meta import found_nothing
from ..formatting import number_text

F = TypeVar("F", bound=Finding)
ClaimVerdict = Literal["supported", "refuted", "depends", "not decided", "not run"]
LINEAR = ("sparse_local", "sparse_random", "linformer", "performer")
STRIDED = "sparse_strided"
HIDDEN = ": other costs may hide more, and a longer or wider one would tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What claims are tested on: the rows of a run, and what its studies found.

    `every` has approximations and recurrent layers too.
    """

    every: Sequence[Row]
    run: Mapping[str, Any]

    @property
    def rows(self) -> list[Row]:
        """Of exact attention."""
        return [row for row in self.every if is_exact(row)]

    @property
    def quadratic(self) -> list[Row]:
        """Those that claims on quadratic growth are about: no sparse pattern."""
        others = (*LINEAR, STRIDED, *RECURRENT)
        return [row for row in self.rows if family(row["backend"]) not in others]

    def of(self, study: type[F]) -> list[F]:
        return read_findings(study, self.run.get("studies"))


class Found(NamedTuple):
    """The quantity of one backend, or of whatever else has it, on one problem.

    `doubt`: why it decides nothing, "" if it may. `most`: what it may still be beyond the interval,
    if fixed costs hide it; None if they cannot.
    """

    of: str
    low: float
    high: float
    text: str
    doubt: str = ""
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Quantity:
    """`within`: what counts as holding."""

    claim: str
    name: str
    within: tuple[float, float]
    measure: Callable[[Measured], Iterable[Found]]

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
            return f"{self.name}: {low}"
        return f"{self.name}: " + (f"{low} to {high}" if high else f"above {low}")


@dataclass(frozen=True)
class Claim:
    """A claim, tested on some runs. Only rows of the same run are compared.

    `quantities`: all must hold. `needs`: the scenario or the study that measures them.
    """

    name: str
    statement: str
    needs: str
    quantities: Sequence[Quantity]
    runs: Sequence[Measured]

    @cached_property
    def found(self) -> list[tuple[Quantity, Found]]:
        each = ((one, run) for run in self.runs for one in self.quantities)
        return [(one, found) for one, run in each for found in one.measure(run)]

    @cached_property
    def verdict(self) -> ClaimVerdict:
        """One quantity that fails refutes the claim, one that is open leaves it not decided."""
        each = {self.of(one) for one in self.quantities}
        if "refuted" in each or len(each) == 1:
            return "refuted" if "refuted" in each else each.pop()
        return "depends" if "depends" in each else "not decided"

    def of(self, quantity: Quantity) -> ClaimVerdict:
        return agreed(one.verdict(found) for one, found in self.found if one is quantity)

    @property
    def parts(self) -> Iterator[tuple[str, ClaimVerdict, str]]:
        """Whose quantity it is, the verdict there, and the last numbers with that verdict; of many
        problems how many have each.
        """
        for (of, name), some in by(self.found, lambda one: (one[1].of, one[0].name)).items():
            last = {one.verdict(found): one.text(found) for one, found in some}
            verdict = agreed(last)
            text = "; ".join(last[one] for one in deciding(verdict) if one in last)
            counts = Counter(one.verdict(found) for one, found in some)
            every = ", ".join(f"{count} {one}" for one, count in counts.items())
            text += f"; in all {every}" if len(some) > 1 else ""
            yield f"{of}, {name}" if len(self.quantities) > 1 else of, verdict, text

    @property
    def lacking(self) -> str:
        """`not tested: growth with d; attnbench run claims measures it (claims_growth)`, and why a
        study found nothing.
        """
        names = [one.name for one in self.quantities if self.of(one) == "not run"]
        if not names:
            return ""
        missing = f"not tested: {', '.join(names)}; " if self.found else ""
        reasons = (why for run in self.runs for why in found_nothing(run.run, {self.needs}))
        return "; ".join(
            (f"{missing}attnbench run claims measures it ({self.needs})", *dict.fromkeys(reasons))
        )


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
