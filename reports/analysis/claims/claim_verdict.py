"""The verdict on a claim, and how several verdicts are combined."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ..heads import MARGIN_RATIO

ClaimVerdict = Literal["supported", "refuted", "depends", "inconclusive", "not run"]
LOOKS: dict[str, Literal["good", "bad", "mixed", "open"]] = {
    "supported": "good",
    "refuted": "bad",
    "depends": "mixed",
    "inconclusive": "open",
}  # of those that were tested, in the order of sentences
EQUAL = (1 / (1 + MARGIN_RATIO), 1 + MARGIN_RATIO)  # ratios that count as equal
Evidence = tuple[ClaimVerdict, str]  # of one problem: verdict and numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The verdict for one backend, or for whatever else (`of`) the claim is tested on.

    `numbers` are the evidence as text.
    """

    of: str
    verdict: ClaimVerdict
    numbers: str


def agreed(verdicts: Iterable[ClaimVerdict]) -> ClaimVerdict:
    """The verdict of tests of a general statement: problems of a backend, backends, rules, runs.

    "depends" if they contradict each other, else "refuted" if one refutes it, else "inconclusive"
    if one is. Tests that were not run do not count.
    """
    found = {verdict for verdict in verdicts if verdict != "not run"}
    if "depends" in found or {"supported", "refuted"} <= found:
        return "depends"
    for verdict in ("refuted", "inconclusive", "supported"):
        if verdict in found:
            return verdict
    return "not run"


def jointly(verdicts: Iterable[ClaimVerdict]) -> ClaimVerdict:
    """The verdict of the parts of one claim, which must all hold.

    One that fails refutes it; one that is inconclusive or was not run leaves it inconclusive.
    """
    found = set(verdicts)
    if found <= {"not run"}:
        return "not run"
    if "refuted" in found:
        return "refuted"
    if found == {"supported"}:
        return "supported"
    return "depends" if "depends" in found else "inconclusive"


def by_interval(low: float, high: float, claimed: tuple[float, float]) -> ClaimVerdict:
    """Supported if the interval lies within the claimed range, refuted if outside.

    Otherwise inconclusive, as with a NaN.
    """
    if claimed[0] <= low and high <= claimed[1]:
        return "supported"
    return "refuted" if low > claimed[1] or high < claimed[0] else "inconclusive"


def above(low: float, high: float, bound: float) -> ClaimVerdict:
    """Whether a value is more than a bound: supported if its whole interval is, refuted if none is.

    A tie, of equal accuracies for example, is not more. Inconclusive with a NaN.
    """
    return "supported" if low > bound else "refuted" if high <= bound else "inconclusive"


def below(low: float, high: float, bound: float) -> ClaimVerdict:
    """The same for less than a bound."""
    return above(-high, -low, -bound)


def part(of: str, evidence: Sequence[Evidence], numbers: str | None = None) -> list[Part]:
    """The evidence of several problems as one part, by default with the numbers that decide.

    Empty without evidence.
    """
    if not evidence:
        return []
    verdict = agreed(verdict for verdict, _ in evidence)
    return [
        Part(of=of, verdict=verdict, numbers=deciding(evidence) if numbers is None else numbers)
    ]


def deciding(evidence: Sequence[Evidence]) -> str:
    """The numbers of the last problem with the verdict that all have together.

    Of "depends" those of the last that supports and of the last that refutes, with these words.
    """
    last = dict(evidence)
    verdict = agreed(last)
    if verdict in last:
        return last[verdict]
    return "; ".join(f"{one}: {last[one]}" for one in ("supported", "refuted") if one in last)
