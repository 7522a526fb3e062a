"""Verdicts as text, for comparisons of runs and of the environments of one run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf, isfinite, log

from ..formatting import (
    STATUS_WORDS,
    bytes_text,
    list_text,
    number_text,
    plural,
    ratio_range_text,
    time_text,
    times_text,
)
from .verdict import BETTER_WORSE, REASONS, SAME, UNDECIDED, CaseVerdict, GeometricMean, Rules

TITLES = {
    "latency": "latency",
    "peak_bytes": "peak bytes",
    "energy_per_call": "energy per call",
    "status": "status",
}
HINTS = {
    "one_process": "a standard run (--plan standard) has several processes",
    "between_runs": (
        "compare versions in one run (--python), in turns (--turns), or run attnbench selfcheck"
        " here in three or more separate starts"
    ),
    "interval_wide": "a longer run (--plan rigorous), or more turns, on an idle machine narrows it",
    "contended": "measure again on an idle machine",
}


# of a gate that decided nothing: the reason in short, and what decides; the first that holds counts
NOTHING_DECIDED = {
    "between_runs": (
        "two runs at different times",
        "measure them in turns: attnbench gate BASE HEAD, or compare --turns",
    ),
    "one_process": ("one process each", "use --plan standard or --turns"),
    "throttled": ("throttled", "measure again on a cool, idle machine"),
    "contended": ("other work on the machine", "measure again on an idle machine"),
    "inputs_differ": (
        "inputs in another order in memory",
        "measure both sides again, with one version of attnbench",
    ),
    "clocks_differ": ("clocks differ", "lock the clocks, or use --turns"),
    "many_claims": ("not clear among so many cases", "use more turns, or fewer cases with --only"),
    "interval_wide": (
        "intervals wider than the margin",
        "use more turns, --plan rigorous, or a larger margin",
    ),
    "missing": ("no value on one side", "measure both sides again"),
}


def nothing_decided_text(metric: str, cases: int, reasons: Mapping[str, int]) -> str:
    """`latency: nothing decided (0 of 6: one process each); use --plan standard or --turns`."""
    known = [NOTHING_DECIDED[reason] for reason in NOTHING_DECIDED if reason in reasons]
    why, hint = known[0] if known else ("", "use more turns")
    if "between_runs" in reasons and "one_process" in reasons:
        why = f"{why}, one process each"
    said = f"{TITLES[metric]}: nothing decided (0 of {cases}{f': {why}' if why else ''})"
    return f"{said}; {hint}"


def reason_text(code: str, rules: Rules) -> str:
    """What a code means; `one_process` with the number that verdicts allow for."""
    if code == "one_process":
        return f"one process: the interval allows for {rules.noise.process.text}"
    return REASONS[code]


def worth_a_line(found: CaseVerdict) -> bool:
    return found.metric == "latency" or found.verdict != SAME


def severity(found: CaseVerdict) -> tuple[int, float]:
    """A sort key: worse, undecided, better, same; within each the largest change first."""
    rank = 0 if found.worse else 1 if found.verdict == UNDECIDED else 2 if found.better else 3
    return rank, -abs(log(found.ratio)) if isfinite(found.ratio) and found.ratio > 0 else -inf


def verdict_text(found: CaseVerdict) -> str:
    """With the reasons if it is undecided; reasons of other verdicts go into sentences."""
    reasons = (
        f": {', '.join(found.reasons)}" if found.verdict == UNDECIDED and found.reasons else ""
    )
    return found.verdict + reasons


def ratio_text(found: CaseVerdict) -> str:
    exact = found.low == found.high
    return number_text(found.ratio) + ("" if exact else ratio_range_text(found.low, found.high))


def value_text(found: CaseVerdict, *, is_new: bool) -> str:
    side, value = (found.new, found.new_value) if is_new else (found.base, found.base_value)
    if side is None:
        return "absent"
    if not isfinite(value):
        return STATUS_WORDS.get(side.status, side.status) if found.metric == "status" else ""
    if found.metric == "latency":
        return time_text(value)
    if found.metric == "energy_per_call":
        return f"{number_text(value)} J"
    texts = {bytes_text(value) for value in (found.base_value, found.new_value)}
    differ = found.base_value != found.new_value
    return f"{value:.0f} B" if differ and len(texts) == 1 else bytes_text(value)


def counts_text(verdicts: Sequence[CaseVerdict]) -> str:
    """`slower in 1, faster in 0, same in 4 and undecided in 1 of 6 cases`; all of one metric."""
    better, worse = BETTER_WORSE[verdicts[0].metric]
    counts = Counter(one.verdict for one in verdicts)
    texts = [f"{verdict} in {counts[verdict]}" for verdict in (worse, better, SAME, UNDECIDED)]
    return f"{list_text(texts)} of {plural(len(verdicts), 'case')}"


def mean_text(mean: GeometricMean | None) -> str:
    if mean is None:
        return ""
    text = f"{times_text(mean.ratio, mean.low, mean.high)} over {plural(mean.cases, 'case')}"
    return text if isfinite(mean.low) else f"{text}, without an interval"
