"""The verdict on a claim, and how several verdicts are combined."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ...words import SAME_RATIO

ClaimVerdict = Literal["supported", "refuted", "depends", "inconclusive", "not run"]
LOOKS: dict[str, Literal["good", "bad", "mixed", "open"]] = {
    "supported": "good",
    "refuted": "bad",
    "depends": "mixed",
    "inconclusive": "open",
}  # of those that were tested, in the order of sentences
OPPOSITE: dict[ClaimVerdict, ClaimVerdict] = {"supported": "refuted", "refuted": "supported"}
EQUAL = (1 / (1 + SAME_RATIO), 1 + SAME_RATIO)  # ratios that count as equal


class Evidence(NamedTuple):
    """Of one problem: verdict and numbers, for one backend or whatever else (`of`) is tested."""

    of: str
    verdict: ClaimVerdict
    numbers: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The verdict of all evidence for one backend, or for whatever else the claim is tested on."""

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


def parts(
    evidence: Iterable[Evidence], numbers: Callable[[Sequence[Evidence]], str]
) -> tuple[Part, ...]:
    """All evidence for one backend, or whatever it is of, together; `numbers`: what is shown."""
    by_name: dict[str, list[Evidence]] = {}
    for one in evidence:
        by_name.setdefault(one.of, []).append(one)
    return tuple(
        Part(of=of, verdict=agreed(one.verdict for one in some), numbers=numbers(some))
        for of, some in by_name.items()
    )


def deciding(evidence: Sequence[Evidence]) -> str:
    """The numbers of the last problem with the verdict that all have together.

    Of "depends" those of the last that supports and of the last that refutes, with these words.
    """
    last = {one.verdict: one.numbers for one in evidence}
    verdict = agreed(last)
    if verdict in last:
        return last[verdict]
    return "; ".join(f"{one}: {last[one]}" for one in ("supported", "refuted") if one in last)


def first_texts(evidence: Sequence[Evidence]) -> str:
    """Up to three different texts, or two and the number of the others; first what decides."""
    verdict = agreed(one.verdict for one in evidence)
    first = {one.verdict: one.numbers for one in reversed(evidence)}
    decide = ("supported", "refuted") if verdict == "depends" else (verdict,)
    ordered = [first[one] for one in decide if one in first]
    texts = list(dict.fromkeys([*ordered, *(one.numbers for one in evidence)]))
    more = f"; and {len(texts) - 2} more" if len(texts) > 3 else ""
    return "; ".join(texts[: 2 if more else 3]) + more
