"""A verdict and what it rests on, in words: for comparisons of runs and of the environments
of one.
"""

from collections import Counter
from collections.abc import Sequence
from math import inf, isfinite, log

from ..formatting import (
    STATUS_WORDS,
    bytes_text,
    list_text,
    number_text,
    plural,
    time_text,
    times_text,
)
from .verdict import SAME, UNDECIDED, WORDS, Finding, GeometricMean

TITLES = {
    "latency": "latency",
    "peak_bytes": "peak bytes",
    "energy_per_call": "energy per call",
    "status": "outcome",
}
HINTS = {
    "one_process": "a standard run (--plan standard) would decide",
    "interval_wide": "a longer run (--plan rigorous), or more turns, on an idle machine narrows it",
    "contended": "measure again on an idle machine",
}


def worth_a_line(found: Finding) -> bool:
    return found.metric == "latency" or found.verdict != SAME


def severity(found: Finding) -> tuple[int, float]:
    rank = 0 if found.worse else 1 if found.verdict == UNDECIDED else 2 if found.better else 3
    return rank, -abs(log(found.ratio)) if isfinite(found.ratio) and found.ratio > 0 else -inf


def verdict_text(found: Finding) -> str:
    """With the codes where they are why; what only stands beside a verdict is told in sentences."""
    return (
        f"{found.verdict}: {', '.join(found.reasons)}"
        if found.verdict == UNDECIDED and found.reasons
        else found.verdict
    )


def ratio_text(found: Finding) -> str:
    exact = found.low == found.high
    return times_text(
        found.ratio, None if exact else found.low, None if exact else found.high
    ).replace(" times", "")


def value_text(found: Finding, *, is_new: bool) -> str:
    side, value = (found.new, found.new_value) if is_new else (found.base, found.base_value)
    if side is None:
        return "absent"
    if not isfinite(value):
        return STATUS_WORDS.get(side.status, side.status) if found.metric == "status" else ""
    if found.metric == "latency":
        return time_text(value)
    if found.metric == "energy_per_call":
        return f"{number_text(value)} J"
    alike = found.base_value != found.new_value and bytes_text(found.base_value) == bytes_text(
        found.new_value
    )
    return f"{value:.0f} B" if alike else bytes_text(value)


def counted(some: Sequence[Finding]) -> str:
    better, worse = WORDS[some[0].metric]
    found = Counter(one.verdict for one in some)
    return list_text(
        [f"{verdict} in {found[verdict]}" for verdict in (worse, better, SAME, UNDECIDED)]
    )


def mean_text(mean: GeometricMean | None) -> str:
    if mean is None:
        return ""
    return f"{times_text(mean.ratio, mean.low, mean.high)} over {plural(mean.cases, 'case')}"
