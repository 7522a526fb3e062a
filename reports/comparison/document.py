"""A comparison as JSON: an object per case and metric, and the same answers as flat facts."""

import json
from collections.abc import Iterator, Mapping
from math import isfinite, nan
from typing import Any

from ...harness.stats.intervals import Interval
from ..data.row_groups import AXES
from ..facts import Fact, mark_word
from ..formatting import json_fields
from ..judging.ratio import Ratio, noise_of
from .compare import Comparison, Side
from .sentences import among_all
from .verdict import MEASURED, METRICS, CaseVerdict, GateResult

SCHEMA = 1
NO_RATIO = Ratio(value=nan, low=nan, high=nan, paired=False, margin_ratio=nan)


def as_json(found: Comparison) -> str:
    """One object, a line per case and metric, and one per fact."""
    floor, process = found.floor, noise_of(found.new.rows[0]).process
    means = {name: _mean(mean) for name, mean in found.means.items()}
    head = {
        "schema": SCHEMA,
        "base": _side(found.base),
        "new": _side(found.new),
        "baseline": found.rules.baseline,
        "turns": found.rules.turns,
        "margin_ratio": found.rules.margin_ratio,
        "geometric_mean": {"all": means.pop("", None), "backends": means},
        "noise_floor": floor
        and {
            **json_fields(floor.check, "started_utc", "paired_noise_ratio", "run_noise_ratio"),
            "between_runs_ratio": floor.between_runs.ratio if floor.between_runs else None,
            "starts": floor.starts,
        },
        "process_noise": {"ratio": process.spread.ratio, "source": process.source},
        "environment_differences": [one._asdict() for one in found.differences],
        "gate": found.gate_result and _gate(found.gate_result),
        "notes": list(found.notes),
    }
    lists = {
        "cases": [_case(one, found) for one in found.verdicts],
        "facts": [one.document for one in facts(found)],
    }
    texts = [json.dumps(head, allow_nan=False)[:-1]]
    for name, some in lists.items():
        lines = ",\n".join(json.dumps(one, allow_nan=False) for one in some)
        texts.append(f'"{name}": [\n{lines}\n]')
    return f"{', '.join(texts)}}}\n"


def _side(side: Side) -> dict[str, Any]:
    run = side.name if len(side.runs) > 1 else side.meta["run"]
    return {"run": run, "path": str(side.path), "device": side.meta["device"]}


def _mean(mean: Interval) -> dict[str, Any]:
    return {"ratio": mean.value, **json_fields(mean, "low", "high"), "cases": mean.units}


def _gate(result: GateResult) -> dict[str, Any]:
    return {
        "margins": dict(result.gate.margins),
        "fail_on_undecided": result.gate.fail_on_undecided,
        **json_fields(result, "passed", "outcome"),
        "idle": [json_fields(one, "metric", "cases", "reasons") for one in result.idle],
        "regressions": [
            {"case": one.shown["case"], **json_fields(one, "metric", "verdict")}
            for one in result.regressions
        ],
        "undecided": len(result.undecided),
    }


def _case(one: CaseVerdict, of: Comparison) -> dict[str, Any]:
    row, ratio = one.shown, one.ratio or NO_RATIO
    p_value = ratio.contrast.p_beyond(ratio.margin_ratio) if ratio.contrast else nan
    sides = {"base": one.base, "new": one.new}
    return {
        "case": row["case"],
        "base_case": one.base and one.base["case"],
        "backend": row["backend"],
        "exactness": row.get("exactness") or "exact",
        **{axis: row.get(axis) for axis in AXES if axis != "run"},
        "metric": one.metric,
        "unit": METRICS[one.metric].unit,
        **json_fields(one, "verdict", "reasons"),
        "mark": mark_word(one.mark),
        "ratio": json_fields(ratio, "value")["value"],
        **json_fields(ratio, "low", "high", "margin_ratio", "paired", "by_way_of"),
        "p_value": p_value if isfinite(p_value) else None,
        "base": json_fields(one, "base_value")["base_value"],
        "new": json_fields(one, "new_value")["new_value"],
        **{f"{name}_status": row and row["status"] for name, row in sides.items()},
        **{f"{name}_reason": row and (row["reason"] or "") for name, row in sides.items()},
    }


def facts(found: Comparison) -> Iterator[Fact]:
    """Each verdict, the mean ratios, and what the gate says."""
    axes = [axis for axis in found.axes if axis not in ("run", "python")]
    sides = {"base": found.rules.baseline or found.base.name, "new": found.new.name}

    def fact(quantity: str, value: float, place: Mapping[str, Any] = sides, **more: Any) -> Fact:
        return Fact(answer="comparison", place=place, quantity=quantity, value=value, **more)

    for one in found.verdicts:
        row, ratio, of = one.shown, one.ratio or NO_RATIO, METRICS[one.metric]
        place = {**sides, "backend": row["backend"], **{axis: row.get(axis) for axis in axes}}
        yield fact(
            "status" if one.metric == "status" else f"{one.metric}_ratio",
            ratio.value,
            place,
            low=ratio.low,
            high=ratio.high,
            mark=mark_word(one.mark),
            reason="; ".join((one.verdict, *one.reasons)),
        )
        for side, value in (("base", one.base_value), ("new", one.new_value)):
            if isfinite(value):
                yield fact(f"{side}_{of.quantity}", value, place)
    for backend, mean in found.means.items():
        place = {**sides, "backend": backend} if backend else sides
        yield fact("mean_latency_ratio", mean.value, place, low=mean.low, high=mean.high)
    for metric in MEASURED:
        if some := found.of(metric):
            reason = f"among all {len(some)} at once (Holm)"
            yield fact(f"differing_{metric}_count", len(among_all(some)), reason=reason)
    if (result := found.gate_result) is not None:
        yield fact("regression_count", len(result.regressions), reason=result.outcome)
