"""What a test of a claim came to, and how several outcomes make one."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

Verdict = Literal["supported", "refuted", "depends", "inconclusive", "not run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The verdict for one backend, or for whatever else the claim is tested on; `numbers` are what
    it rests on, in words.
    """

    of: str
    verdict: Verdict
    numbers: str


def agreed(verdicts: Iterable[Verdict]) -> Verdict:
    """Of tests that stand side by side, such as backends: their verdict where all agree, "depends"
    where they contradict each other.

    What was not run has no voice. An open test leaves the whole open, unless the others contradict
    each other already.
    """
    found = {verdict for verdict in verdicts if verdict != "not run"}
    if len(found) <= 1:
        return next(iter(found), "not run")
    return "depends" if "depends" in found or {"supported", "refuted"} <= found else "inconclusive"


def over_problems(verdicts: Iterable[Verdict]) -> Verdict:
    """Of one backend on several problems. A statement that is said of all is refuted by one of
    them, if no other supports it.
    """
    found = {verdict for verdict in verdicts if verdict != "not run"}
    return "refuted" if found == {"refuted", "inconclusive"} else agreed(found)


def jointly(verdicts: Iterable[Verdict]) -> Verdict:
    """Of halves of one claim, all of which must hold: one that fails refutes it, one that is open
    or was not run leaves it open.
    """
    found = set(verdicts)
    if found <= {"not run"}:
        return "not run"
    if "refuted" in found:
        return "refuted"
    return (
        "supported"
        if found == {"supported"}
        else "depends"
        if "depends" in found
        else "inconclusive"
    )


def by_interval(low: float, high: float, wanted: tuple[float, float]) -> Verdict:
    """Supported where the interval lies within what is wanted, refuted where it lies outside, else
    open; a NaN leaves it open.
    """
    if wanted[0] <= low and high <= wanted[1]:
        return "supported"
    return "refuted" if low > wanted[1] or high < wanted[0] else "inconclusive"


def number(finding: dict[str, Any], name: str) -> float | None:
    """A number of a study's finding; None where it is missing, or is no number."""
    value = finding.get(name)
    return (
        float(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
        else None
    )
