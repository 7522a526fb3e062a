"""Advice as JSON; docs/format.md describes it."""

import json
from math import isfinite
from typing import Any

from ...harness.stats.intervals import Interval
from .answer import Advice
from .asked import Asked
from .choices import Choice, Decision
from .memory import Longest, Need
from .sentences import NOT_INCLUDED, beside_tables, headline, measure_command, run_commands
from .times import Cell

SCHEMA = 1


def as_json(advice: Advice) -> str:
    """One object; what is not known is null."""
    asked = advice.inquiry
    found = {
        "schema": SCHEMA,
        "answer": headline(advice),
        "sentences": list(beside_tables(advice)),
        "model": asked.model,
        "model_type": asked.model_type,
        "device": asked.device,
        "device_name": asked.device_name,
        "dtype": asked.dtype,
        "batch": asked.batch,
        "tp": asked.tp,
        "most_context": asked.most_context,
        "memory_bytes": asked.memory_bytes,
        "weight_bytes": asked.weight_bytes,
        "max_seconds": dict(asked.max_seconds),
        "decisions": [_decision(advice, one) for one in advice.decisions],
        "memory": [
            {"phase": phase, "implementation": implementation.name, **_need(need)}
            for phase, implementation, need in advice.needs
        ],
        "longest": [_longest(one) for one in advice.longest],
        "traps": advice.traps,
        "not_measured": [*map(_asked, advice.not_measured)],
        "other_layers": dict(asked.others),
        "missing": [
            {"phase": one.phase, "context": one.context, "implementation": implementation.name}
            for one in advice.missing
            for implementation in one.missing
        ],
        "commands": list(run_commands(advice)),
        "measure": measure_command(advice) if advice.missing else None,
        "runs": [str(run.path) for run in advice.runs],
        "not_included": NOT_INCLUDED,
    }
    return json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False)


def _decision(advice: Advice, one: Decision) -> dict[str, Any]:
    best = one.best
    return {
        "phase": one.phase,
        "context": one.context,
        "attn_implementation": best.implementation.name if best else None,
        "choices": [*map(_choice, one.choices)],
    }


def _choice(one: Choice) -> dict[str, Any]:
    against = one.against
    return {
        "attn_implementation": one.implementation.name,
        "backend": one.implementation.backend,
        "total_ms": _interval(one.total_ms),
        "fitted": one.fitted or None,
        "why_not": one.why_not or None,
        "against_fastest": None
        if against is None
        else {
            "ratio": _number(against.ratio),
            "low": _number(against.low),
            "high": _number(against.high),
            "verdict": against.verdict,
            "reasons": list(against.reasons),
            "paired": against.paired,
        },
        "layers": [*map(_cell, one.cells)],
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "layer": cell.asked.layer,
        "count": cell.asked.count,
        "status": cell.status,
        "reason": cell.reason or None,
        "call_ms": _interval(cell.time_ms),
        "fitted": cell.fitted or None,
        "peak_bytes": cell.peak_bytes,
        "kernel": cell.kernel or None,
        "bytes_per_s": _interval(cell.rate.bytes_per_s) if cell.rate else None,
        "bandwidth_ratio": _interval(cell.rate.share) if cell.rate else None,
        "run": cell.stored.run.path.name if cell.stored else None,
        "case": cell.stored.row["case"] if cell.stored else None,
    }


def _asked(one: Asked) -> dict[str, Any]:
    return {"layer": one.layer, "count": one.count, "why": one.why}


def _need(need: Need) -> dict[str, Any]:
    return {
        "context": need.context,
        "weight_bytes": need.weights,
        "cache_bytes": need.cache,
        "paged_cache_bytes": need.paged_cache,
        "kept_bytes": need.kept,
        "attention_bytes": need.attention,
        "total_bytes": need.total,
        "at_most": need.at_most,
        "source": need.words or None,
    }


def _longest(one: Longest) -> dict[str, Any]:
    return {
        "phase": one.phase,
        "attn_implementation": one.implementation.name,
        "context": one.context,
        "at_least": one.at_least,
        "limit": one.limit if one.context is not None else None,
        "found_by": one.found_by if one.context is not None else None,
        "checked": one.checked or None,
        "total_ms": _interval(one.time.total_ms) if one.time else None,
        "source": one.words or None,
    }


def _interval(found: Interval | None) -> dict[str, Any] | None:
    if found is None or not isfinite(found.value):
        return None
    return {name: _number(getattr(found, name)) for name in ("value", "low", "high")}


def _number(value: float) -> float | None:
    return value if isfinite(value) else None
