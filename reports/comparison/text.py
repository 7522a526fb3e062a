"""A comparison as a table and sentences, as Markdown, and as JSON; names are escaped in each."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import expm1, isfinite, nan
from typing import Any

from ...harness.files.printable import visible
from ...harness.stats.intervals import Interval, latency_interval
from ..data.decode import traffic
from ..data.exactness import exactness_note
from ..data.noise_floor import GOOD_STARTS
from ..data.read import Document
from ..data.row_groups import AXES, Row, label, problem, varying_axes
from ..data.run_meta import device_name
from ..deciding import what_decides_ratios
from ..elements import Table
from ..facts import Fact, mark_word
from ..formatting import (
    json_fields,
    list_text,
    markdown_cell,
    markdown_grid,
    plural,
    rough_percent_text,
)
from ..judging.many import beyond, differing_baselines
from ..judging.ratio import Ratio
from .compare import Comparison
from .gate import GateResult
from .verdict import METRICS, CaseVerdict
from .verdict_text import (
    TITLES,
    by_case,
    case_table,
    clipped,
    counts_text,
    doubt_lines,
    ended_lines,
    fact_text,
    margin_text,
    marks_text,
    means_text,
    nothing_decided_text,
)

SCHEMA = 1
MOST_ROWS = 100
"""Rows of a table; JSON has all. GitHub drops summaries of more than 1024 KiB; this is far less."""
MOST_NAMED = 4
MOST_OF_A_LINE = 300
NO_RATIO = Ratio(value=nan, low=nan, high=nan, paired=False, margin_ratio=nan)
UNITS = {"latency": "ms", "peak_bytes": "bytes", "energy_per_call": "J"}


def table(comparison: Comparison) -> Table:
    """A line per case, what is decided first, at most MOST_ROWS."""
    cases = by_case(comparison.verdicts)[:MOST_ROWS]
    axes = _axes(comparison)
    against = comparison.baseline
    return case_table(
        cases,
        {
            "backend": lambda row: clipped(_backend(row)),
            "problem": lambda row: label(problem(row), axes),
        },
        sides=("base", "new") if against is None else (clipped(against), "this"),
    )


def sentences(comparison: Comparison) -> Iterator[str]:
    """The result, and its limits."""
    verdicts = comparison.verdicts
    if left_out := comparison.left_out:
        yield f"{plural(left_out, 'case')} left out by --only."
    if (more := len(by_case(verdicts)) - MOST_ROWS) > 0:
        yield f"{plural(more, 'more case')} left out, the last ones; --format json has all."
    yield from filter(None, [marks_text(verdicts)])
    yield from _heading(comparison)
    for metric in ("latency", "peak_bytes", "energy_per_call"):
        some = [one for one in verdicts if one.metric == metric]
        if some:
            yield f"{TITLES[metric].capitalize()}: {counts_text(some)}.{_of_all(some)}"
    if comparison.mean is not None:
        yield f"Time: {means_text({'': comparison.mean})}."
    if len(comparison.means) > 1:
        named = dict(list(comparison.means.items())[: 2 * MOST_NAMED])
        more = len(comparison.means) - len(named)
        texts = {clipped(backend): mean for backend, mean in named.items()}
        yield f"By backend: {means_text(texts)}{f', and {more} more' if more else ''}."
    inexact = dict.fromkeys(one.shown["backend"] for one in verdicts if exactness_note(one.shown))
    if inexact:
        yield f"Not exact attention, so not the same result: {clipped_line(list_text([*inexact]))}."
    yield from map(clipped_line, ended_lines(verdicts))
    yield from doubt_lines(verdicts, comparison.noise.process)
    yield from map(clipped_line, differing_baselines(comparison.new.rows))
    yield from filter(None, [_what_decides(comparison)])
    yield from _between_runs(comparison)
    yield f"The same: times and energies within {margin_text(comparison.rules.margin_ratio)}."
    yield from _differences(comparison)
    yield from map(clipped_line, comparison.notes)
    if comparison.gate_result:
        yield gate_text(comparison.gate_result)


def markdown(comparison: Comparison) -> str:
    """For pull requests and job summaries."""
    found = table(comparison)
    text = "\n".join(f"- {markdown_cell(sentence)}" for sentence in sentences(comparison))
    rows = [list(map(markdown_cell, row)) for row in found.texts]
    grid = markdown_grid(found.columns, rows, right=found.numbers)
    return f"### attnbench compare\n\n{text}\n" + (f"\n{grid}\n" if rows else "")


def as_json(comparison: Comparison) -> str:
    """One object, a line per case and metric."""
    rules, result = comparison.rules, comparison.gate_result
    floor, process = comparison.floor, comparison.noise.process
    head = {
        "schema": SCHEMA,
        **{
            name: {
                "run": run.name if run.is_several else run.meta["run"],
                "path": str(run.path),
                "device": run.meta["device"],
            }
            for name, run in (("base", comparison.base), ("new", comparison.new))
        },
        "baseline": comparison.baseline,
        "turns": rules.turns,
        "margin_ratio": rules.margin_ratio,
        "geometric_mean": {
            "all": _mean_fields(comparison.mean),
            "backends": {name: _mean_fields(m) for name, m in comparison.means.items()},
        },
        "noise_floor": floor
        and {
            **json_fields(floor, "started_utc", "paired_noise_ratio", "run_noise_ratio"),
            "between_runs_ratio": floor.between_runs.ratio if floor.between_runs else None,
            "starts": floor.starts,
        },
        "process_noise": {"ratio": process.spread.ratio, "source": process.source},
        "environment_differences": [one._asdict() for one in comparison.differences],
        "gate": result
        and {
            "margins": dict(result.gate.margins),
            "fail_on_undecided": result.gate.fail_on_undecided,
            **json_fields(result, "passed", "outcome"),
            "idle": [json_fields(one, "metric", "cases", "reasons") for one in result.idle],
            "regressions": [
                {"case": one.shown["case"], **json_fields(one, "metric", "verdict")}
                for one in result.regressions
            ],
            "undecided": len(result.undecided),
        },
        "notes": list(comparison.notes),
    }
    metas = {"base": comparison.base.meta, "new": comparison.new.meta}
    cases = ",\n".join(
        json.dumps(_fields(found, metas), allow_nan=False) for found in comparison.verdicts
    )
    facts = ",\n".join(
        json.dumps(fact.document, allow_nan=False) for fact in comparison_facts(comparison)
    )
    lists = f', "cases": [\n{cases}\n], "facts": [\n{facts}\n]}}\n'
    return json.dumps(head, allow_nan=False)[:-1] + lists


def comparison_facts(found: Comparison) -> Iterator[Fact]:
    """Each verdict, the mean ratios, and what the gate says."""
    axes = [axis for axis in _axes(found) if axis not in ("run", "python")]
    sides = {"base": found.baseline or found.base.name, "new": found.new.name}
    for one in found.verdicts:
        row, ratio = one.shown, one.ratio or NO_RATIO
        place = {**sides, "backend": row["backend"], **{axis: row.get(axis) for axis in axes}}
        yield Fact(
            answer="comparison",
            place=place,
            quantity="status" if one.metric == "status" else f"{one.metric}_ratio",
            value=ratio.value,
            low=ratio.low,
            high=ratio.high,
            mark=mark_word(one.mark),
            reason="; ".join((one.verdict, *one.reasons)),
        )
        for side, value in (("base", one.base_value), ("new", one.new_value)):
            unit = {"latency": "latency_ms", "energy_per_call": "energy_per_call_j"}
            quantity = f"{side}_{unit.get(one.metric, one.metric)}"
            if isfinite(value):
                yield Fact(answer="comparison", place=place, quantity=quantity, value=value)
    for backend, mean in (("", found.mean), *found.means.items()):
        if mean is not None:
            yield Fact(
                answer="comparison",
                place={**sides, "backend": backend} if backend else sides,
                quantity="mean_latency_ratio",
                value=mean.value,
                low=mean.low,
                high=mean.high,
            )
    for metric in METRICS:
        if some := [one for one in found.verdicts if one.metric == metric]:
            yield Fact(
                answer="comparison",
                place=sides,
                quantity=f"differing_{metric}_count",
                value=len(_among_all(some)),
                reason=f"among all {len(some)} at once (Holm)",
            )
    if (result := found.gate_result) is not None:
        yield Fact(
            answer="comparison",
            place=sides,
            quantity="regression_count",
            value=len(result.regressions),
            reason=result.outcome,
        )


def clipped_line(text: str) -> str:
    return visible(text)[:MOST_OF_A_LINE]


def _axes(found: Comparison) -> list[str]:
    """By which the problems are told apart; the two runs are no such axis."""
    problems = [problem(one.shown) | {"run": ""} for one in found.verdicts]
    return varying_axes(problems)


def _of_all(some: Sequence[CaseVerdict]) -> str:
    """Which differences hold among all pairs at once, where those are fewer than have the mark."""
    left = _among_all(some)
    if len(left) == sum(one.worse or one.better for one in some):
        return ""
    counts = Counter(one.verdict for one in left)
    words = ", ".join(f"{word} in {count}" for word, count in counts.items()) or "none differs"
    return f" Among all {len(some)} at once (Holm): {words}."


def _among_all(some: Sequence[CaseVerdict]) -> list[CaseVerdict]:
    known = [(one, one.ratio) for one in some if one.ratio and one.mark]
    holds = beyond([ratio for _, ratio in known], 0.0)
    found = zip(known, holds, strict=True)
    return [one for (one, _), is_so in found if is_so and (one.worse or one.better)]


def _backend(row: Row) -> str:
    note = exactness_note(row)
    return f"{row['backend']} ({note})" if note else str(row["backend"])


def _heading(found: Comparison) -> Iterator[str]:
    if found.baseline is not None:
        run, baseline = clipped_line(found.new.name), clipped(found.baseline)
        yield f"Run {run}: every backend against {baseline}."
        return
    new, base = (
        f"{clipped_line(one.name)} ({clipped(device_name(one.meta))})"
        for one in (found.new, found.base)
    )
    yield f"New: {new}."
    count = found.rules.turns
    turns = "" if count is None else f", of {plural(count, 'turn')} of one run each"
    yield f"Base: {base}. A ratio is new over base{turns}."


def _what_decides(comparison: Comparison) -> str:
    """Of the cases of one run: which plan would decide what is open. No plan makes two stored runs
    alike; hints of reasons say what helps there.
    """
    if not comparison.rules.same_run:
        return ""
    ratios = [one.ratio for one in comparison.latencies if one.ratio]
    rows = {**comparison.base.by_id, **comparison.new.by_id}.values()
    return what_decides_ratios(ratios, [*rows], {"": comparison.new.meta})


def _between_runs(comparison: Comparison) -> Iterator[str]:
    """What the intervals of stored runs allow for."""
    if comparison.rules.history:
        yield (
            "Intervals allow for what the runs of base differ by, case by case; slower changes are"
            " not in them."
        )
    floor, between_runs = comparison.floor, comparison.noise.between_runs
    unpaired = any(one.ratio and not one.ratio.paired for one in comparison.verdicts)
    of_one = comparison.rules.same_run or comparison.rules.history
    if floor is None or between_runs is None or of_one or not unpaired:
        return
    hours, minutes = floor.span_s / 3600, floor.span_s / 60
    over = f"{hours:.1f} hours" if hours >= 1 else f"{minutes:.0f} minutes"
    few = "" if floor.starts >= GOOD_STARTS else f" which {GOOD_STARTS} would show more closely,"
    yield (
        f"Intervals of values that were not measured together allow for the"
        f" {rough_percent_text(between_runs.ratio)} by which two runs may differ here:"
        f" {floor.starts} self-checks within {over} have a standard deviation of"
        f" {rough_percent_text(expm1(between_runs.sd))},{few} and slower changes are not in them."
    )


def _differences(comparison: Comparison) -> Iterator[str]:
    texts = [
        f"{one.fact} {clipped(fact_text(one.base))} before, {clipped(fact_text(one.new))} now"
        for one in comparison.differences
    ]
    if texts:
        intended = "" if comparison.rules.environment_differs else " (what is compared)"
        yield f"The environments differ{intended}: {'; '.join(texts)}."


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
        idle = "; ".join(
            nothing_decided_text(one.metric, one.cases, one.reasons) for one in result.idle
        )
        return f"Gate {margins}: {idle}{absent}."
    some, count = (regressions or undecided)[:MOST_NAMED], len(regressions)
    named = [f"{clipped(one.shown['case'])} {one.verdict}" for one in some]
    rest = max(count, len(undecided)) - MOST_NAMED
    more = f", and {rest} more" if rest > 0 else ""
    what = plural(count, "regression") if count else f"{len(undecided)} not confirmed"
    return f"Gate {margins}: failed, {what}: {', '.join(named)}{more}."


def _mean_fields(mean: Interval | None) -> Mapping[str, Any] | None:
    if mean is None:
        return None
    return {"ratio": mean.value, **json_fields(mean, "low", "high"), "cases": mean.units}


def _fields(found: CaseVerdict, metas: Mapping[str, Document]) -> dict[str, Any]:
    sides, row = {"base": found.base, "new": found.new}, found.shown
    known = found.ratio or NO_RATIO
    numbers = json_fields(known, "value", "low", "high", "margin_ratio", "paired", "by_way_of")
    values = json_fields(found, "base_value", "new_value")
    p_value = known.contrast.p_beyond(known.margin_ratio) if known.contrast else nan
    return {
        "case": row["case"],
        "base_case": found.base and found.base["case"],
        "backend": row["backend"],
        "exactness": row.get("exactness") or "exact",
        **{axis: row.get(axis) for axis in AXES if axis != "run"},
        "metric": found.metric,
        "unit": UNITS.get(found.metric),
        **json_fields(found, "verdict", "reasons"),
        "mark": mark_word(found.mark),
        "ratio": numbers.pop("value"),
        **numbers,
        "p_value": p_value if isfinite(p_value) else None,
        **{name.removesuffix("_value"): value for name, value in values.items()},
        **{f"{side}_status": one and one["status"] for side, one in sides.items()},
        **{f"{side}_reason": one and (one["reason"] or "") for side, one in sides.items()},
        **{
            f"{side}_decode": _decode_fields(one, metas[side])
            if found.metric == "latency"
            else None
            for side, one in sides.items()
        },
    }


# ---- decode steps, in JSON: the share of memory bandwidth that either side reached ---------------


def _decode_fields(row: Row | None, run: Document) -> dict[str, Any] | None:
    """The rate and the share with their bounds; None if it is no decode step."""
    timed = row is not None and any(map(any, row.get("block_ms") or ()))
    moved = traffic(row, run) if row is not None and timed else None
    if row is None or moved is None:
        return None
    rate = moved.rate(latency_interval(row["block_ms"]))
    known = {
        f"{bound}{name}": value
        for name, interval in (("bytes_per_s", rate.bytes_per_s), ("bandwidth_ratio", rate.share))
        for bound, value in zip(("", "low_", "high_"), _bounds(interval), strict=True)
    }
    return {
        **known,
        "measured_bytes_per_s": rate.traffic.memory_bytes_per_s,
        "fits_in_cache": rate.traffic.fits_in_cache,
        "note": rate.note,
    }


def _bounds(found: Interval | None) -> list[float | None]:
    return [*json_fields(found, "value", "low", "high").values()] if found else [None] * 3
