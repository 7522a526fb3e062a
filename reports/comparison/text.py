"""A comparison for people (a table and sentences, Markdown) and for programs (JSON); names stay
inert in each.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from ..data.run_meta import device_name
from ..data.row_groups import AXES, label, problem, varying_axes
from ..formatting import list_text, markdown_cell, plural, visible
from .case_samples import UNFINISHED, Side
from .compare import Comparison, Matched
from .gate import Outcome
from .verdict import (
    CODES,
    DEFAULT_MARGIN,
    MOST_RAISED_RATIO,
    SAME,
    UNDECIDED,
    Finding,
    GeometricMean,
)
from .verdict_text import (
    HINTS,
    TITLES,
    counted,
    mean_text,
    ratio_text,
    severity,
    value_text,
    verdict_text,
    worth_a_line,
)

SCHEMA = 1
MOST_ROWS = 100
"""Of a table; a person reads no further, and JSON has all. GitHub drops a summary of more than 1024
KiB; this stays far below.
"""
MOST_CHARACTERS = 60
MOST_NAMED = 4
UNITS = {"latency": "ms", "peak_bytes": "bytes", "energy_per_call": "J"}


def table(comparison: Comparison) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Titles and cells, worst first: every latency, and of the rest what is not the same. At most
    MOST_ROWS lines.
    """
    shown = sorted(filter(worth_a_line, comparison.findings), key=severity)[:MOST_ROWS]
    axes = varying_axes([problem(found.shown.problem) for found in comparison.findings])
    columns = {
        "backend": [_backend(found.shown) for found in shown],
        "problem": [label(problem(found.shown.problem), axes) for found in shown],
        "of": [TITLES[found.metric] for found in shown],
        "base": [value_text(found, is_new=False) for found in shown],
        "new": [value_text(found, is_new=True) for found in shown],
        "ratio": [ratio_text(found) for found in shown],
        "verdict": [verdict_text(found) for found in shown],
    }
    # One problem needs no name, and latency alone no word for it.
    kept = [
        name
        for name, cells in columns.items()
        if name not in ("problem", "of") or len(set(cells)) > 1
    ]
    return tuple(kept), [
        tuple(map(clipped, row)) for row in zip(*(columns[name] for name in kept), strict=True)
    ]


def sentences(comparison: Comparison) -> Iterator[str]:
    """What it comes to, and how far to believe it."""
    findings = comparison.findings
    if (more := sum(map(worth_a_line, findings)) - MOST_ROWS) > 0:
        yield f"{more} more lines are left out, the least bad ones; --format json has all."
    yield from _heading(comparison.matched)
    for metric in ("latency", "peak_bytes", "energy_per_call"):
        some = [found for found in findings if found.metric == metric]
        if some:
            mean = (
                f"; geometric mean {mean_text(comparison.mean)}"
                if metric == "latency" and comparison.mean
                else ""
            )
            yield (
                f"{TITLES[metric].capitalize()}: {counted(some)} of"
                f" {plural(len(some), 'case')}{mean}."
            )
    if len(comparison.means) > 1:
        named = [
            f"{clipped(backend)} {mean_text(mean)}"
            for backend, mean in list(comparison.means.items())[: 2 * MOST_NAMED]
        ]
        more = len(comparison.means) - len(named)
        yield (
            "Geometric mean by backend:"
            f" {', '.join(named)}{f', and {more} more' if more > 0 else ''}."
        )
    if inexact := list(
        dict.fromkeys(found.shown.backend for found in findings if found.shown.note)
    ):
        yield f"Not exact attention, so not the same result: {clipped_line(list_text(inexact))}."
    yield from _outcomes(findings, comparison.matched.baseline)
    yield from _doubts(findings)
    yield from _margins(comparison)
    yield from map(clipped_line, comparison.matched.notes)
    if comparison.outcome:
        yield _gate(comparison.outcome)


def markdown(comparison: Comparison) -> str:
    """For pull requests and job summaries."""
    titles, rows = table(comparison)
    cells = [[markdown_cell(cell) or " " for cell in row] for row in rows]
    lines = [list(titles), ["---"] * len(titles), *cells]
    said = "\n".join(f"- {markdown_cell(sentence)}" for sentence in sentences(comparison))
    grid = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"### attnbench compare\n\n{said}\n" + (f"\n{grid}\n" if rows else "")


def as_json(comparison: Comparison) -> str:
    """One object, a line per case and metric."""
    matched, floor, outcome = comparison.matched, comparison.floor, comparison.outcome
    head = {
        "schema": SCHEMA,
        **{
            name: {
                "run": run.meta["run"] if matched.turns is None else run.name,
                "path": str(run.path),
                "device": run.meta["device"],
                "environment": run.python,
            }
            for name, run in (("base", matched.base), ("new", matched.new))
        },
        "baseline": matched.baseline,
        "turns": matched.turns,
        "geometric_mean": {
            "all": _mean_fields(comparison.mean),
            "backends": {name: _mean_fields(m) for name, m in comparison.means.items()},
        },
        "noise_floor": (
            None
            if floor is None
            else {
                "started_utc": floor.started_utc,
                "paired_noise_ratio": floor.paired_noise_ratio,
                "run_noise_ratio": floor.run_noise_ratio,
            }
        ),
        "environment_differences": [
            {"fact": one.fact, "base": one.base, "new": one.new} for one in matched.differences
        ],
        "gate": (
            None
            if outcome is None
            else {
                "margins": dict(outcome.gate.margins),
                "fail_on_undecided": outcome.gate.fail_on_undecided,
                "passed": outcome.passed,
                "regressions": [
                    {"case": one.shown.case, "metric": one.metric, "verdict": one.verdict}
                    for one in outcome.regressions
                ],
                "undecided": len(outcome.undecided),
            }
        ),
        "notes": list(matched.notes),
    }
    cases = ",\n".join(json.dumps(_fields(found), allow_nan=False) for found in comparison.findings)
    return json.dumps(head, allow_nan=False)[:-1] + f', "cases": [\n{cases}\n]}}\n'


def clipped(text: str) -> str:
    inert = visible(text)
    return inert if len(inert) <= MOST_CHARACTERS else f"{inert[: MOST_CHARACTERS - 3]}..."


def clipped_line(text: str) -> str:
    return visible(text)[: 5 * MOST_CHARACTERS]


def _backend(side: Side) -> str:
    return f"{side.backend} ({side.note})" if side.note else side.backend


def _heading(matched: Matched) -> Iterator[str]:
    if matched.baseline is not None:
        yield (
            f"Run {clipped_line(matched.new.name)}: every backend against"
            f" {clipped(matched.baseline)}."
        )
        return
    yield f"New: {clipped_line(matched.new.name)} ({clipped(device_name(matched.new.meta))})."
    turns = "" if matched.turns is None else f", of {plural(matched.turns, 'turn')} of one run each"
    yield (
        f"Base: {clipped_line(matched.base.name)} ({clipped(device_name(matched.base.meta))}). A"
        f" ratio is new over base{turns}."
    )


def _outcomes(findings: Sequence[Finding], baseline: str | None) -> Iterator[str]:
    """What has no number on one side or on both."""
    some = [found for found in findings if found.metric == "status"]
    changed = [found for found in some if found.worse or found.better]
    for found in changed[:MOST_NAMED]:
        side = found.new if found.worse else found.base
        assert side is not None
        why = f": {clipped_line(side.reason)}" if side.reason else ""
        came = (
            f"{value_text(found, is_new=False)} before, {value_text(found, is_new=True)} now{why}"
        )
        yield f"{found.verdict.capitalize()}: {clipped(found.shown.case)}, {came}"
    if len(changed) > MOST_NAMED:
        yield f"{len(changed) - MOST_NAMED} more broken or mended."
    alike = sum(found.verdict == SAME for found in some)
    held_against = "base" if baseline is None else clipped(baseline)
    absent = Counter(
        held_against if found.base is None else "new"
        for found in some
        if found.base is None or found.new is None
    )
    otherwise = sum(
        "status_differs" in found.reasons and found.verdict == UNDECIDED for found in some
    )
    unfinished = sum(
        side is not None and side.status in UNFINISHED
        for found in some
        for side in (found.base, found.new)
    )
    said = [f"{plural(alike, 'case')} failed in the same way on both sides"] if alike else []
    said += [f"{plural(otherwise, 'case')} ended in different ways"] if otherwise else []
    said += [
        f"{plural(count, 'case')} absent from {side}" for side, count in sorted(absent.items())
    ]
    said += [f"{plural(unfinished, 'case')} not reached or interrupted"] if unfinished else []
    if said:
        yield f"Without a ratio: {list_text(said)}."


def _doubts(findings: Sequence[Finding]) -> Iterator[str]:
    """Why some are undecided, what would help, and what to know of the others."""
    told = [found for found in findings if found.metric != "status"]
    for what, some in (
        ("Undecided", [found for found in told if found.verdict == UNDECIDED]),
        ("Decided", [found for found in told if found.verdict != UNDECIDED]),
    ):
        counted = Counter(
            code for found in some for code in found.reasons if code != "environment_differs"
        )
        for code, count in counted.most_common():
            hint = f"; {HINTS[code]}" if code in HINTS and what == "Undecided" else ""
            yield f"{what} in {count}, {code}: {CODES[code]}{hint}."


def _margins(comparison: Comparison) -> Iterator[str]:
    margins: dict[str, set[float]] = {}
    for found in comparison.findings:
        if isfinite(found.margin_ratio):
            margins.setdefault(found.metric, set()).add(found.margin_ratio)
    said = [
        f"{TITLES[metric]} {' or '.join(map(percent_text, sorted(some)))}"
        for metric, some in margins.items()
    ]
    if said:
        floor, given = comparison.floor, comparison.terms.given
        raised = any(
            metric not in given and max(some) > DEFAULT_MARGIN[metric]
            for metric, some in margins.items()
        )
        twice = f"twice the A/A noise floor of {clipped(floor.started_utc)}" if floor else ""
        source = (
            f"; the default is raised to {twice}, {percent_text(MOST_RAISED_RATIO)} at most"
            if raised
            else ""
        )
        yield f"Changes that count as the same: {', '.join(said)}{source}."
    matched = comparison.matched
    if matched.differences:
        told = [
            f"{one.fact} {_fact(one.base)} before, {_fact(one.new)} now"
            for one in matched.differences
        ]
        only = "" if comparison.terms.environment_differs else " (what is compared)"
        yield f"The environments differ{only}: {'; '.join(told)}."


def _fact(value: Any) -> str:
    return (
        "unknown"
        if value is None
        else clipped(value if isinstance(value, str) else json.dumps(value))
    )


def percent_text(ratio: float) -> str:
    return f"{float(f'{100 * ratio:.3g}'):g} %"


def _gate(outcome: Outcome) -> str:
    margins = outcome.gate.margins.items()
    wanted = ", ".join(
        f"{metric} {'noise' if margin is None else percent_text(margin)}"
        for metric, margin in margins
    )
    if outcome.passed:
        unsure = (
            f"; {plural(len(outcome.undecided), 'comparison')} undecided"
            if outcome.undecided
            else ""
        )
        return f"Gate {wanted}: passed{unsure}."
    named = [
        f"{clipped(found.shown.case)} {found.verdict}"
        for found in (outcome.regressions or outcome.undecided)[:MOST_NAMED]
    ]
    count = len(outcome.regressions)
    more = (
        f", and {max(count, len(outcome.undecided)) - MOST_NAMED} more"
        if max(count, len(outcome.undecided)) > MOST_NAMED
        else ""
    )
    what = plural(count, "regression") if count else f"{len(outcome.undecided)} undecided"
    return f"Gate {wanted}: failed, {what}: {', '.join(named)}{more}."


def _mean_fields(mean: GeometricMean | None) -> Mapping[str, Any] | None:
    return (
        None
        if mean is None
        else {
            "ratio": mean.ratio,
            "low": _finite(mean.low),
            "high": _finite(mean.high),
            "cases": mean.cases,
        }
    )


def _fields(found: Finding) -> dict[str, Any]:
    base, new = found.base, found.new
    return {
        "case": found.shown.case,
        "base_case": base.case if base else None,
        "backend": found.shown.backend,
        "exactness": found.shown.exactness,
        **{axis: found.shown.problem.get(axis) for axis in AXES if axis != "run"},
        "metric": found.metric,
        "unit": UNITS.get(found.metric),
        "verdict": found.verdict,
        "reasons": list(found.reasons),
        "ratio": _finite(found.ratio),
        "low": _finite(found.low),
        "high": _finite(found.high),
        "margin_ratio": _finite(found.margin_ratio),
        "base": _finite(found.base_value),
        "new": _finite(found.new_value),
        "paired": found.paired,
        "p_value": _finite(found.p_value),
        "base_status": base.status if base else None,
        "new_status": new.status if new else None,
        "base_reason": base.reason if base else None,
        "new_reason": new.reason if new else None,
    }


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
