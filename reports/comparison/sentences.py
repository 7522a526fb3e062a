"""A comparison in words: its verdicts, what was not decided and why, and what the gate says."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from math import isfinite
from string import ascii_lowercase
from typing import Any

from ...harness.files.printable import visible
from ...harness.stats.intervals import Interval
from ..data.exactness import exactness_note
from ..data.run_meta import OUT_OF_MEMORY, Difference
from ..formatting import (
    STATUS_WORDS,
    list_text,
    number_text,
    plural,
    ratio_range_text,
)
from ..judging.over import beyond, differing_baselines
from ..judging.ratio import noise_of
from ..words import NOISY, NOT_DECIDED, SEEN
from .compare import Comparison
from .verdict import MEASURED, METRICS, NO_VALUE, SAME, CaseVerdict, GateResult

MOST_NAMED = 4
MOST_OF_A_NAME, MOST_OF_A_LINE = 60, 300  # characters
REASONS = {
    "between_runs": "measured at different times on a machine of unknown run-to-run noise, so the"
    " interval allows for 30 %; compare in turns (`--turns`, `attnbench gate`), or run `attnbench"
    " doctor --deep` once",
    "one_process": "one process each; use `--plan standard` or `--turns`",
    "throttled": "one side was throttled in most blocks; measure again on a cool, idle machine",
    "contended": "other work took cores in most blocks of one side; measure again on an idle"
    " machine",
    "inputs_differ": "the sides have q, k and v in different orders in memory; measure both with"
    " one version of attnbench",
    "clocks_differ": "the GPU's clocks differ; lock the clocks, or use `--turns`",
    "many_claims": "not clear enough among so many comparisons (Holm); use more turns, or fewer"
    " cases with `--only`",
    "runs_differ": "measured at different times, so the interval allows for this machine's"
    " run-to-run noise; measure both in turns (`attnbench gate`, `--turns`), or repeat `attnbench"
    " doctor --deep`",
    "interval_wide": "the interval is too wide for the margin; use more turns, `--plan rigorous`,"
    " or a larger margin",
    "other_device": "the devices differ, and so may the kernels",
    "missing": "one side lacks the value; measure both sides again",
    "unpaired": "not measured in the same blocks",
    "indirect": "a ratio of ratios, through the baseline timed beside each",
}
"""Why a verdict is not decided; what would decide it. Of a gate that decided nothing the first one
that holds is told.
"""
LETTERS = dict(zip(REASONS, ascii_lowercase, strict=False))
"""Of a reason, in a table and before its sentence."""


def lines(found: Comparison) -> Iterator[str]:
    """What is not in the answer, its card and the table: a sentence each."""
    if found.left_out:
        yield f"{plural(found.left_out, 'case')} left out by --only."
    inexact = {one.shown["backend"]: None for one in found.verdicts if exactness_note(one.shown)}
    if inexact:
        yield f"Not exact attention, so not the same result: {line(list_text([*inexact]))}."
    yield from map(line, _ends(found.of("status")))
    yield from map(line, differing_baselines(found.new.rows))
    if found.rules.history:
        yield (
            "Intervals allow for the differences among the runs of base, case by case; they do"
            " not allow for a slow drift."
        )
    yield f"Times and energies within {margin_text(found.rules.margin_ratio)} count as the same."
    if texts := [_difference(one) for one in found.differences]:
        intended = "" if found.rules.environment_differs else " (what is compared)"
        yield f"The environments differ{intended}: {'; '.join(texts)}."
    yield from map(line, found.notes)


def clipped(text: str, most: int = MOST_OF_A_NAME) -> str:
    """A name of a run's, safe to print."""
    safe = visible(text)
    return safe if len(safe) <= most else f"{safe[: most - 3]}..."


def line(text: str) -> str:
    return clipped(text, MOST_OF_A_LINE)


def margin_text(ratio: float) -> str:
    return f"{float(f'{100 * ratio:.3g}'):g} %"


# ---- a case --------------------------------------------------------------------------------------


def verdict_text(found: CaseVerdict, sides: tuple[str, str] = ("base", "new")) -> str:
    """`slower ×1.50 (1.40 to 1.60)`, or, with the letters of the reasons, `◐ ×1.10 (0.90 to 1.30)
    a b`; bytes, which are exact, without a word. Of a case that did not end ok on both sides, how
    it ended.
    """
    if found.metric == "status":
        return _ends_text(found, sides)
    ratio = found.ratio
    if ratio is None:
        return f"no value in {sides[isfinite(found.base_value)]}"
    bounds = "" if ratio.low == ratio.high else ratio_range_text(ratio.low, ratio.high)
    text = f"×{number_text(ratio.value)}{bounds}"
    if found.metric == "peak_bytes" and found.mark is not None:
        return found.verdict if number_text(ratio.value) == number_text(1) else text
    if found.verdict != NOT_DECIDED:
        return f"{found.verdict} {text}"
    letters = (LETTERS[one] for one in found.reasons if one in LETTERS)
    sign = [found.mark.sign] if found.mark is not None else []
    return " ".join([*sign, text, *letters])


def _ends_text(found: CaseVerdict, names: tuple[str, str]) -> str:
    """`fused: out of memory`, `broken: crashed`."""
    if found.base is None or found.new is None:
        return f"only in {names[found.base is None]}"
    statuses = [side["status"] for side in (found.base, found.new)]
    ends = [STATUS_WORDS[one].partition(" (")[0] for one in statuses]
    if found.worse or found.better:
        return f"broken: {ends[1]}" if found.worse else f"mended: was {ends[0]}"
    if {*statuses} <= {*OUT_OF_MEMORY}:
        ends = [STATUS_WORDS["oom"]] * 2
    if ends[0] == ends[1]:
        return f"both: {ends[0]}"
    every = zip(names, ends, statuses, strict=True)
    return ", ".join(f"{name}: {end}" for name, end, status in every if status != "ok")


# ---- many cases ----------------------------------------------------------------------------------


def count_texts(found: Comparison) -> Iterator[str]:
    """Of each metric: `Time: slower in 2 of 5 cases; same in 3.`, and what of that holds among all
    at once, where fewer differences do than have the mark.
    """
    for metric in MEASURED:
        some, of = found.of(metric), METRICS[metric]
        counts = Counter(one.said for one in some)
        order = (of.worse, of.better, SAME, SEEN.words, NOISY.words, NOT_DECIDED, NO_VALUE)
        first, *others = [f"{word} in {counts[word]}" for word in order if counts[word]] or [""]
        if some:
            texts = [f"{first} of {plural(len(some), 'case')}", *others]
            yield f"{of.title.capitalize()}: {'; '.join(texts)}.{_of_all(some)}"


def _of_all(some: Sequence[CaseVerdict]) -> str:
    left = among_all(some)
    if len(left) == sum(one.worse or one.better for one in some):
        return ""
    counts = Counter(one.verdict for one in left)
    words = ", ".join(f"{word} in {count}" for word, count in counts.items()) or "none"
    return f" After correction for {len(some)} comparisons (Holm): {words}."


def among_all(some: Sequence[CaseVerdict]) -> list[CaseVerdict]:
    """The differences that hold even among so many pairs."""
    known = [(one, one.ratio) for one in some if one.ratio and one.mark]
    holds = beyond([ratio for _, ratio in known], 0.0)
    found = zip(known, holds, strict=True)
    return [one for (one, _), is_so in found if is_so and (one.worse or one.better)]


def mean_text(mean: Interval) -> str:
    """`Geometric mean: ×1.06 (1.04 to 1.08).`"""
    bounds = ratio_range_text(mean.low, mean.high) or " (no interval)"
    return f"Geometric mean: ×{number_text(mean.value)}{bounds}."


def _ends(ended: Iterable[CaseVerdict]) -> Iterator[str]:
    """The cases that broke or were mended, by name: how they ended before and now, and why."""
    changed = [one for one in ended if one.worse or one.better]
    for one in changed[:MOST_NAMED]:
        before, now = (
            STATUS_WORDS[side["status"]] if side else "absent" for side in (one.base, one.new)
        )
        failed = one.new if one.worse else one.base
        why = f": {failed['reason']}" if failed is not None and failed["reason"] else ""
        case = clipped(one.shown["case"])
        yield f"{one.verdict.capitalize()}: {case}, {before} before, {now} now{why}"
    if len(changed) > MOST_NAMED:
        yield f"{len(changed) - MOST_NAMED} more broken or mended."


# ---- what is not decided, and why ----------------------------------------------------------------


def doubts(found: Comparison) -> Iterator[str]:
    """Reasons for what is not decided with what would help, and reasons that limit the others."""
    process = noise_of(found.new.rows[0]).process
    counts: dict[str, Counter[str]] = {"Not confirmed": Counter(), "Decided": Counter()}
    for one in found.verdicts:
        if one.metric != "status":
            counts["Not confirmed" if one.verdict == NOT_DECIDED else "Decided"].update(one.reasons)
    is_open = counts["Not confirmed"]
    for what, reasons in counts.items():
        for reason, count in reasons.most_common():
            if reason == "environment_differs" or (what == "Decided" and reason in is_open):
                continue
            said = REASONS[reason]
            if reason == "one_process":
                allowed = f"one process: the interval allows for {process.text}"
                said = said.replace("one process each", allowed)
            if what == "Decided":
                yield f"{what} in {count}: {said.partition('; ')[0]}."
            else:
                yield f"{what} ({LETTERS[reason]}) in {count}: {said}."


def _difference(one: Difference) -> str:
    """`threads 1 before, 2 now`; of several settings, each that differs."""
    if not (isinstance(one.base, dict) and isinstance(one.new, dict)):
        return _changed(one.fact, one.base, one.new, "unknown")
    names = [name for name in one.base | one.new if one.base.get(name) != one.new.get(name)]
    sides = ((name, one.base.get(name), one.new.get(name)) for name in names)
    return "; ".join(_changed(*side, "unset") for side in sides)


def _changed(fact: str, base: Any, new: Any, absent: str) -> str:
    before, now = (
        absent if value is None else value if isinstance(value, str) else json.dumps(value)
        for value in (base, new)
    )
    return f"{clipped(fact)} {clipped(before)} before, {clipped(now)} now"


# ---- the gate ------------------------------------------------------------------------------------


def gate_text(result: GateResult) -> str:
    """Whether it passed, and why not."""
    margins = ", ".join(
        f"{metric} {'noise' if margin is None else margin_text(margin)}"
        for metric, margin in result.gate.margins.items()
    )
    regressions, undecided = result.regressions, result.undecided
    absent = f"; {plural(len(result.absent), 'case')} on one side only" if result.absent else ""
    if result.passed:
        unsure = f"; {plural(len(undecided), 'comparison')} not confirmed" if undecided else ""
        return f"Gate {margins}: passed{unsure}{absent}."
    if result.outcome == "nothing decided":
        idle = (_idle_text(one.metric, one.cases, one.reasons) for one in result.idle)
        return f"Gate {margins}: {'; '.join(idle)}{absent}."
    some, count = (regressions or undecided)[:MOST_NAMED], len(regressions)
    named = [f"{clipped(one.shown['case'])} {one.verdict}" for one in some]
    rest = max(count, len(undecided)) - MOST_NAMED
    more = f", and {rest} more" if rest > 0 else ""
    what = plural(count, "regression") if count else f"{len(undecided)} not confirmed"
    return f"Gate {margins}: failed, {what}: {', '.join(named)}{more}."


def _idle_text(metric: str, cases: int, reasons: Collection[str]) -> str:
    """`latency: nothing decided (0 of 6: one process each); use `--plan standard` or ...`."""
    known = (said for code, said in REASONS.items() if code in reasons and "; " in said)
    why, _, hint = next(known, "; use more turns").partition("; ")
    of = f"0 of {cases}: {why}" if why else f"0 of {cases}"
    return f"{metric}: nothing decided ({of}); {hint}"
