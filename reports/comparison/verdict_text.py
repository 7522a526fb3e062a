"""Verdicts as text, for comparisons of runs and of backends."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf, isfinite, log
from string import ascii_lowercase
from typing import Any

from ...harness.files.printable import visible
from ...harness.stats.intervals import Interval
from ..data.noise_floor import ProcessNoise
from ..data.processor_time import disturbed
from ..data.row_groups import Row, by
from ..data.run_meta import OUT_OF_MEMORY
from ..elements import Marked, Table, table_of
from ..formatting import STATUS_WORDS, list_text, number_text, plural, ratio_range_text, time_text
from ..judging.ratio import Ratio
from ..quantity import Cell, Number
from ..words import NOISY, NOT_DECIDED, SEEN, meaning_of
from .verdict import BETTER_WORSE, NO_VALUE, SAME, CaseVerdict, value_of

MOST_CHARACTERS = 60
MOST_NAMED = 4
TITLES = {
    "latency": "latency",
    "peak_bytes": "peak bytes",
    "energy_per_call": "energy per call",
    "status": "status",
}


REASONS = {  # why a verdict is not decided, and what would decide it
    "between_runs": (
        "two runs at different times, and how much runs differ here is not known: the interval"
        " allows for 30 %",
        "compare versions in turns (--turns, attnbench gate), or run"
        " attnbench doctor --deep here once",
    ),
    "one_process": ("one process each", "use --plan standard or --turns"),
    "throttled": (
        "one side was throttled in most blocks and the other was not",
        "measure again on a cool, idle machine",
    ),
    "contended": (
        "other work competed for the cores in most blocks of a side",
        "measure again on an idle machine",
    ),
    "inputs_differ": (
        "q, k and v lay in another order in memory",
        "measure both sides again, with one version of attnbench",
    ),
    "clocks_differ": ("the GPU's clocks differ", "lock the clocks, or use --turns"),
    "many_claims": (
        "not clear enough among so many comparisons (Holm)",
        "use more turns, or fewer cases with --only",
    ),
    "runs_differ": (
        "measured at different times: the interval allows for what runs differ by here",
        "measure both in turns (attnbench gate, --turns); or let attnbench doctor --deep learn more"
        " of the machine",
    ),
    "interval_wide": (
        "the interval is too wide for the margin",
        "use more turns, --plan rigorous, or a larger margin",
    ),
    "other_device": ("another device, and not known to be the same kernel", ""),
    "missing": ("one of the two has no such value", "measure both sides again"),
    "unpaired": ("not measured in the same blocks", ""),
    "indirect": ("a ratio of ratios, by way of the baseline that was timed beside either", ""),
}
"""Of a gate that decided nothing the first one that holds is told."""
LETTERS = dict(zip(REASONS, ascii_lowercase, strict=False))
"""Of a reason, in a table and before its sentence."""


def nothing_decided_text(metric: str, cases: int, reasons: Mapping[str, int]) -> str:
    """`latency: nothing decided (0 of 6: one process each); use --plan standard or --turns`."""
    known = [said for code, said in REASONS.items() if code in reasons and said[1]]
    why, hint = known[0] if known else ("", "use more turns")
    return f"{TITLES[metric]}: nothing decided (0 of {cases}{f': {why}' if why else ''}); {hint}"


def severity(found: CaseVerdict) -> tuple[int, bool, float]:
    """A sort key: worse, better, the same, not decided; of each first times and how cases ended,
    the largest change first.
    """
    rank = 0 if found.worse else 1 if found.better else 3 if found.verdict == NOT_DECIDED else 2
    value = found.ratio.value if found.ratio else inf
    change = abs(log(value)) if isfinite(value) and value > 0 else inf
    return rank, found.metric not in ("latency", "status"), -change


def by_case(verdicts: Iterable[CaseVerdict]) -> list[tuple[CaseVerdict, ...]]:
    """All verdicts on each case, those cases first of which most is decided."""
    found = by(verdicts, lambda one: (id(one.base), id(one.new)))
    return sorted(found.values(), key=lambda some: min(map(severity, some)))


def verdict_text(found: CaseVerdict, sides: tuple[str, str] = ("base", "new")) -> str:
    """`slower ×1.50 (1.40 to 1.60)`, or, with the letters of the reasons, `◐ ×1.10 (0.90 to 1.30)
    a b`; bytes, which are exact, without a word. Of a case that did not end ok on both sides, how
    it ended.
    """
    if found.metric == "status":
        return _ends_text(found, sides)
    if found.ratio is None:
        return f"no value in {sides[isfinite(found.base_value)]}"
    ratio = f"×{ratio_text(found.ratio)}"
    if found.metric == "peak_bytes" and found.mark is not None:
        return found.verdict if number_text(found.ratio.value) == number_text(1) else ratio
    if found.word != NOT_DECIDED:
        return f"{found.verdict} {ratio}"
    letters = (LETTERS[one] for one in found.reasons if one in LETTERS)
    sign = [found.mark.sign] if found.mark is not None else []
    return " ".join([*sign, ratio, *letters])


def _ends_text(found: CaseVerdict, names: tuple[str, str]) -> str:
    """`fused: out of memory`, `broken: crashed`."""
    sides = (found.base, found.new)
    ends = [STATUS_WORDS[side["status"]].partition(" (")[0] if side else "" for side in sides]
    if not all(sides):
        return f"only in {names[found.base is None]}"
    if found.worse or found.better:
        return f"broken: {ends[1]}" if found.worse else f"mended: was {ends[0]}"
    if all(side and side["status"] in OUT_OF_MEMORY for side in sides):
        ends = [STATUS_WORDS["oom"]] * 2
    if ends[0] == ends[1]:
        return f"both: {ends[0]}"
    every = zip(names, ends, sides, strict=True)
    return ", ".join(
        f"{name}: {end}" for name, end, side in every if side and side["status"] != "ok"
    )


def ratio_text(found: Ratio) -> str:
    exact = found.low == found.high
    return number_text(found.value) + ("" if exact else ratio_range_text(found.low, found.high))


def case_table(
    cases: Sequence[Sequence[CaseVerdict]],
    names: Mapping[str, Callable[[Row], Cell]],
    *,
    sides: tuple[str, str],
) -> Table:
    """A row per case. `names`: the columns that name it. `sides`: what base and new are called."""

    def time(some: Sequence[CaseVerdict], *, is_new: bool) -> Cell:
        one = some[0].new if is_new else some[0].base
        value = value_of(one, "latency") if one and one["status"] == "ok" else None
        if one is None or value is None:
            return ""
        used_ms = one.get("processor_ms") if disturbed(one) else None  # as processor_time.time_of
        note = "" if used_ms is None else f", processor {time_text(used_ms)}"
        return Number(time_text(value) + note)

    def judged(some: Sequence[CaseVerdict], *metrics: str) -> Marked | str:
        found = next((one for one in some if one.metric in metrics), None)
        if found is None:
            return ""
        cell = verdict_text(found, sides)
        return Marked(cell=cell, strong=found.better, failed=found.worse)

    return table_of(
        "",
        cases,
        {
            **{name: _of_case(cell) for name, cell in names.items()},
            sides[0]: lambda some: time(some, is_new=False),
            sides[1]: lambda some: time(some, is_new=True),
            "time": lambda some: judged(some, "latency", "status"),
            "memory": lambda some: judged(some, "peak_bytes"),
            "energy": lambda some: judged(some, "energy_per_call"),
        },
        optional=(*names, *sides, "memory", "energy"),
    )


def _of_case(cell: Callable[[Row], Cell]) -> Callable[[Sequence[CaseVerdict]], Cell]:
    return lambda some: cell(some[0].shown)


def marks_text(verdicts: Iterable[CaseVerdict]) -> str:
    """What the signs of what is not decided mean."""
    return meaning_of({one.mark for one in verdicts if one.mark in (SEEN, NOISY)})


def counts_text(verdicts: Sequence[CaseVerdict]) -> str:
    """`slower in 2; same in 3; seen here, not confirmed in 1 of 6`, all of one metric."""
    better, worse = BETTER_WORSE[verdicts[0].metric]
    order = (worse, better, SAME, SEEN.words, NOISY.words, NOT_DECIDED, NO_VALUE)
    texts = []
    for word in order:
        if some := [one for one in verdicts if one.said == word]:
            texts.append(f"{word} in {len(some)}")
    return f"{'; '.join(texts)} of {plural(len(verdicts), 'case')}"


def means_text(means: Mapping[str, Interval]) -> str:
    """`×1.06 (1.04 to 1.08) on average (geometric mean)`; each with its name, if it has one."""
    texts = [
        f"{name} ×{number_text(mean.value)}{ratio_range_text(mean.low, mean.high)}".strip()
        for name, mean in means.items()
    ]
    tested = all(isfinite(mean.low) for mean in means.values())
    return f"{list_text(texts)} on average (geometric mean{'' if tested else ', not a test'})"


def ended_lines(verdicts: Iterable[CaseVerdict]) -> Iterator[str]:
    """The cases that broke or were mended, by name: how they ended before and now, and why."""
    changed = [one for one in verdicts if one.metric == "status" and (one.worse or one.better)]
    for one in changed[:MOST_NAMED]:
        failed = one.new if one.worse else one.base
        why = f": {failed['reason']}" if failed is not None and failed["reason"] else ""
        before, now = (
            STATUS_WORDS.get(side["status"], side["status"]) if side else "absent"
            for side in (one.base, one.new)
        )
        case = clipped(one.shown["case"])
        yield f"{one.verdict.capitalize()}: {case}, {before} before, {now} now{why}"
    if len(changed) > MOST_NAMED:
        yield f"{len(changed) - MOST_NAMED} more broken or mended."


def doubt_lines(verdicts: Iterable[CaseVerdict], process: ProcessNoise) -> Iterator[str]:
    """Reasons for what is not decided with what would help, and reasons that limit the others."""
    counts: dict[str, Counter[str]] = {"Not confirmed": Counter(), "Decided": Counter()}
    for one in verdicts:
        if one.metric != "status":
            counts["Not confirmed" if one.verdict == NOT_DECIDED else "Decided"].update(one.reasons)
    for what, reasons in counts.items():
        for reason, count in reasons.most_common():
            said = what == "Decided" and reason in counts["Not confirmed"]
            if reason != "environment_differs" and not said:
                text, hint = REASONS[reason]
                if reason == "one_process":
                    text = f"one process: the interval allows for {process.text}"
                is_open = what == "Not confirmed"
                hint = f"; {hint}" if hint and is_open else ""
                letter = f" ({LETTERS[reason]})" if is_open else ""
                yield f"{what}{letter} in {count}: {text}{hint}."


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
