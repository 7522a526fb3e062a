"""Verdicts as text, for comparisons of runs and of the environments of one run."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf, isfinite, log
from string import ascii_lowercase
from typing import Any, NamedTuple

from ...harness.files.printable import visible
from ...harness.stats.intervals import Interval
from ..elements import Marked, Table, table_of
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
from ..quantity import Cell, Number
from ..words import NOT_DECIDED
from .case_samples import CaseSamples
from .verdict import (
    BETTER_WORSE,
    DEFAULT_MARGIN,
    MOST_RAISED_RATIO,
    SAME,
    CaseVerdict,
    Rules,
)

MOST_CHARACTERS = 60
MOST_NAMED = 4
TITLES = {
    "latency": "latency",
    "peak_bytes": "peak bytes",
    "energy_per_call": "energy per call",
    "status": "status",
}


class Reason(NamedTuple):
    """Why a verdict is not decided, or what limits another one.

    `hint`: what would decide it. `idle`, `decides`: the same in short, of a gate that decided
    nothing.
    """

    text: str
    hint: str = ""
    idle: str = ""
    decides: str = ""


REASONS = {  # of a gate that decided nothing, the first that holds counts
    "between_runs": Reason(
        "two runs at different times, and how much runs differ here is not known",
        "compare versions in one run (--python), in turns (--turns), or run attnbench doctor"
        " --deep here once",
        "two runs at different times",
        "measure them in turns: attnbench gate BASE HEAD, or compare --turns",
    ),
    "one_process": Reason(
        "one process: the interval allows for what processes differ by",
        "",
        "one process each",
        "use --plan standard or --turns",
    ),
    "throttled": Reason(
        "the slower side was throttled in most blocks (if paired, the other was not)",
        idle="throttled",
        decides="measure again on a cool, idle machine",
    ),
    "contended": Reason(
        "other work competed for the cores in most blocks of the slower side (if paired, not of the"
        " other)",
        "measure again on an idle machine",
        "other work on the machine",
        "measure again on an idle machine",
    ),
    "inputs_differ": Reason(
        "q, k and v lay in another order in memory",
        idle="inputs in another order in memory",
        decides="measure both sides again, with one version of attnbench",
    ),
    "clocks_differ": Reason(
        "the slower side ran at a lower clock",
        idle="clocks differ",
        decides="lock the clocks, or use --turns",
    ),
    "many_claims": Reason(
        "not clear enough among so many comparisons (Holm)",
        idle="not clear among so many cases",
        decides="use more turns, or fewer cases with --only",
    ),
    "interval_wide": Reason(
        "the interval is too wide for the margin",
        "two versions are decided in one run (--python) or in more --turns",
        "intervals wider than the margin",
        "use more turns, --plan rigorous, or a larger margin",
    ),
    "missing": Reason(
        "one of the two has no such value",
        idle="no value on one side",
        decides="measure both sides again",
    ),
    "unpaired": Reason("not measured in the same blocks"),
}


LETTERS = dict(zip(REASONS, ascii_lowercase, strict=False))
"""Of a reason, in a table and before its sentence."""


def nothing_decided_text(metric: str, cases: int, reasons: Mapping[str, int]) -> str:
    """`latency: nothing decided (0 of 6: one process each); use --plan standard or --turns`."""
    known = [reason for code, reason in REASONS.items() if code in reasons and reason.idle]
    why, hint = known[0][2:] if known else ("", "use more turns")
    if "between_runs" in reasons and "one_process" in reasons:
        why = f"{why}, one process each"
    said = f"{TITLES[metric]}: nothing decided (0 of {cases}{f': {why}' if why else ''})"
    return f"{said}; {hint}"


def worth_a_line(found: CaseVerdict) -> bool:
    return found.metric == "latency" or found.verdict != SAME


def severity(found: CaseVerdict) -> tuple[int, float]:
    """A sort key: worse, better, the same, not decided; within each the largest change first."""
    rank = 0 if found.worse else 1 if found.better else 3 if found.verdict == NOT_DECIDED else 2
    return rank, -abs(log(found.ratio)) if isfinite(found.ratio) and found.ratio > 0 else -inf


def verdict_text(found: CaseVerdict) -> str:
    """With the letters of the sentences that say why it is not decided."""
    why = [LETTERS[one] for one in found.reasons if one in LETTERS]
    return found.verdict + (f" ({', '.join(why)})" if found.verdict == NOT_DECIDED and why else "")


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


def verdict_table(
    title: str,
    shown: Sequence[CaseVerdict],
    names: Mapping[str, Callable[[CaseVerdict], Cell]],
    *,
    sides: tuple[str, str] = ("base", "new"),
    more: Mapping[str, Callable[[CaseVerdict], Cell]] = {},
    case: Callable[[CaseSamples], str] | None = None,
) -> Table:
    """A row per verdict. `names`: the columns that name it; `more`: others. `case`: what the page
    knows the case of a side by.
    """
    several = any(one.metric != "latency" for one in shown)

    def value(one: CaseVerdict, *, is_new: bool) -> Marked:
        side = one.new if is_new else one.base
        found = case(side) if case and side else None
        return Marked(cell=Number(value_text(one, is_new=is_new)), case=found)

    return table_of(
        title,
        shown,
        {
            **names,
            "of": lambda one: TITLES[one.metric] if several else "",
            sides[0]: lambda one: value(one, is_new=False),
            sides[1]: lambda one: value(one, is_new=True),
            "ratio": lambda one: Number(ratio_text(one)),
            **more,
            "verdict": lambda one: Marked(
                cell=verdict_text(one), strong=one.better, failed=one.worse
            ),
        },
        optional=("of", *names, *more),
    )


def counts_text(verdicts: Sequence[CaseVerdict]) -> str:
    """`slower in 1, faster in 0, same in 4 and not decided in 1 of 6 cases`; all of one metric."""
    better, worse = BETTER_WORSE[verdicts[0].metric]
    counts = Counter(one.verdict for one in verdicts)
    texts = [f"{verdict} in {counts[verdict]}" for verdict in (worse, better, SAME, NOT_DECIDED)]
    return f"{list_text(texts)} of {plural(len(verdicts), 'case')}"


def mean_text(mean: Interval | None) -> str:
    if mean is None:
        return ""
    text = f"{times_text(mean.value, mean.low, mean.high)} over {plural(mean.units, 'case')}"
    return text if isfinite(mean.low) else f"{text}, without an interval"


def ended_lines(
    verdicts: Iterable[CaseVerdict], name: Callable[[CaseVerdict], str] | None = None
) -> Iterator[str]:
    """The cases that broke or were mended, by name: what they were before, what they are now."""
    changed = [one for one in verdicts if one.metric == "status" and (one.worse or one.better)]
    for one in changed[:MOST_NAMED]:
        side = one.new if one.worse else one.base
        why = f": {side.reason}" if side is not None and side.reason else ""
        before, now = value_text(one, is_new=False), value_text(one, is_new=True)
        case = name(one) if name else clipped(one.shown.case)
        yield f"{one.verdict.capitalize()}: {case}, {before} before, {now} now{why}"
    if len(changed) > MOST_NAMED:
        yield f"{len(changed) - MOST_NAMED} more broken or mended."


def doubt_lines(verdicts: Iterable[CaseVerdict], rules: Rules) -> Iterator[str]:
    """Reasons for what is not decided with what would help, and reasons that limit the others."""
    counts: dict[str, Counter[str]] = {"Not decided": Counter(), "Decided": Counter()}
    for one in verdicts:
        if one.metric != "status":
            counts["Not decided" if one.verdict == NOT_DECIDED else "Decided"].update(one.reasons)
    for what, reasons in counts.items():
        for reason, count in reasons.most_common():
            if reason != "environment_differs":
                text, hint, *_ = REASONS[reason]
                if reason == "one_process":
                    text = f"one process: the interval allows for {rules.noise.process.text}"
                hint = f"; {hint}" if hint and what == "Not decided" else ""
                letter = f" ({LETTERS[reason]})" if what == "Not decided" else ""
                yield f"{what}{letter} in {count}: {text}{hint}."


def margin_lines(verdicts: Iterable[CaseVerdict], rules: Rules) -> Iterator[str]:
    """How much change counts as the same, and whether noise raised that."""
    margins: dict[str, set[float]] = {}
    for one in verdicts:
        if isfinite(one.margin_ratio):
            margins.setdefault(one.metric, set()).add(one.margin_ratio)
    if not margins:
        return
    texts = [
        f"{TITLES[metric]} {' or '.join(map(margin_text, sorted(some)))}"
        for metric, some in margins.items()
    ]
    raised = any(
        metric not in rules.given and max(some) > DEFAULT_MARGIN[metric]
        for metric, some in margins.items()
    )
    started = rules.floor.started_utc if rules.floor else ""
    twice = f"twice the A/A noise floor of {clipped(started)}"
    most = margin_text(MOST_RAISED_RATIO)
    source = f"; the default is raised to {twice}, {most} at most" if raised else ""
    yield f"Changes that count as the same: {', '.join(texts)}{source}."


def margin_text(ratio: float) -> str:
    return f"{float(f'{100 * ratio:.3g}'):g} %"


def fact_text(value: Any) -> str:
    """Of an environment."""
    if value is None:
        return "unknown"
    return value if isinstance(value, str) else json.dumps(value)


def clipped(text: str) -> str:
    safe = visible(text)
    return safe if len(safe) <= MOST_CHARACTERS else f"{safe[: MOST_CHARACTERS - 3]}..."
