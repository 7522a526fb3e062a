"""The verdict on a claim from numbers, and how several verdicts are combined."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import inf, nextafter
from typing import Literal, NamedTuple, get_args

from ..ratio import Ratio
from ..words import DISTURBED, SAME_RATIO

ClaimVerdict = Literal["supported", "refuted", "depends", "not decided", "not run"]
LOOKS: dict[str, Literal["good", "bad", "mixed", "open"]] = {
    "supported": "good",
    "refuted": "bad",
    "depends": "mixed",
    "not decided": "open",
}  # of those that were tested, in the order of sentences
BUSY = f"{DISTURBED}: to be measured again on an idle machine"
EQUAL = (1 / (1 + SAME_RATIO), 1 + SAME_RATIO)  # ratios that count as equal


class Evidence(NamedTuple):
    """Verdict and numbers for one backend, or for whatever else the claim is tested on (`of`).

    `half`: of a statement that has several, the one that was tested.
    """

    of: str
    verdict: ClaimVerdict
    numbers: str
    half: str = ""


def exactly(holds: bool) -> ClaimVerdict:
    """Of what is counted, without noise."""
    return "supported" if holds else "refuted"


def by_interval(low: float, high: float, claimed: tuple[float, float]) -> ClaimVerdict:
    """Supported if the interval lies within the claimed range, refuted if outside.

    Otherwise not decided, as with a NaN.
    """
    if claimed[0] <= low and high <= claimed[1]:
        return "supported"
    return "refuted" if low > claimed[1] or high < claimed[0] else "not decided"


def above(low: float, high: float, bound: float) -> ClaimVerdict:
    """Whether a value is more than a bound; a tie, of equal accuracies for example, is not more."""
    return by_interval(low, high, (nextafter(bound, inf), inf))


def longer(low: float, high: float) -> ClaimVerdict:
    """Whether a ratio of times is above 1; times that were shown to be the same refute it."""
    verdict = above(low, high, 1.0)
    return "refuted" if by_interval(low, high, EQUAL) == "supported" != verdict else verdict


def of_ratio(of: str, ratio: Ratio, verdict: ClaimVerdict, text: str) -> Evidence:
    """A ratio of two times decides nothing while other work disturbs most blocks of one of them."""
    if ratio.disturbed:
        return Evidence(of, "not decided", text + BUSY)
    return Evidence(of, verdict, text)


def agreed(verdicts: Iterable[ClaimVerdict]) -> ClaimVerdict:
    """The verdict of tests of a general statement: problems of a backend, backends, rules, runs.

    "depends" if they contradict each other, else "refuted" if one refutes it, else "not decided"
    if one is. Tests that were not run do not count.
    """
    found = {verdict for verdict in verdicts if verdict != "not run"}
    if "depends" in found or {"supported", "refuted"} <= found:
        return "depends"
    for verdict in ("refuted", "not decided", "supported"):
        if verdict in found:
            return verdict
    return "not run"


def jointly(verdicts: Iterable[ClaimVerdict]) -> ClaimVerdict:
    """The verdict of the parts of one claim, which must all hold.

    One that fails refutes it; one that is not decided or was not run leaves it not decided.
    """
    found = set(verdicts)
    if "refuted" in found or len(found) < 2:
        return "refuted" if "refuted" in found else next(iter(found), "not run")
    return "depends" if "depends" in found else "not decided"


def tally(verdicts: Iterable[ClaimVerdict]) -> str:
    """`4 supported, 2 refuted, 1 depends`."""
    counts = Counter(verdicts)
    return ", ".join(f"{counts[one]} {one}" for one in get_args(ClaimVerdict) if counts[one])


def shown(evidence: Sequence[Evidence]) -> str:
    """The numbers of the last problem with the verdict that all have together, and of how many.

    Of "depends" those of the last that supports and of the last that refutes, with these words.
    """
    last = {one.verdict: one.numbers for one in evidence}
    verdict = agreed(last)
    text = last.get(verdict) or "; ".join(f"{one}: {last[one]}" for one in ("supported", "refuted"))
    every = tally(one.verdict for one in evidence)
    return text if len(evidence) == 1 else f"{text}; in all {every}"
