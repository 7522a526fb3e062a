"""Advice as JSON; docs/format.md describes it."""

from math import isfinite
from typing import Any

from ...harness.stats.intervals import Interval
from ..facts import mark_word
from ..formatting import json_fields
from ..words import TIMES
from .answer import Advice
from .choices import Choice
from .memory import Longest
from .sentences import beside_tables, headline, measure_command, not_included, run_commands
from .times import Cell

SCHEMA = 1


def document(advice: Advice) -> dict[str, Any]:
    """What is not known is null."""
    asked = advice.inquiry
    names = ("model", "model_type", "device", "device_name", "dtype", "batch", "tp", "most_context")
    sizes = ("weight_bytes", "cache_bytes", "paged_cache_bytes", "state_bytes", "kept_bytes")
    return {
        "schema": SCHEMA,
        "answer": headline(advice),
        "sentences": list(beside_tables(advice)),
        **json_fields(asked, *names, "memory_bytes", "weight_bytes", "devices_for_weights"),
        "weights_source": asked.weights_words or None,
        "dtype_guess": asked.dtype_guess or None,
        "kv_dtype": asked.kv_dtype or None,
        "decisions": [
            {
                **json_fields(one, "phase", "context"),
                "attn_implementation": one.name_of_best or None,
                "choices": [*map(_choice, one.choices)],
            }
            for one in advice.decisions
        ],
        "memory": [
            {
                "phase": phase,
                "implementation": implementation and implementation.name,
                **json_fields(need, "context", *sizes, "attention_bytes", "total_bytes", "at_most"),
                "source": need.words or None,
            }
            for phase, implementation, need in advice.needs
        ],
        "sequences": [one._asdict() for one in advice.sequences],
        "longest": [*map(_longest, advice.longest)],
        "traps": advice.traps,
        "not_measured": [json_fields(one, "layer", "count", "why") for one in advice.not_measured],
        "other_layers": dict(asked.others),
        "states": dict(asked.states),
        "cautions": list(asked.cautions),
        "missing": [
            {**json_fields(one, "phase", "context"), "implementation": implementation.name}
            for one in advice.missing
            for implementation in one.missing
        ],
        "commands": list(run_commands(advice)),
        "measure": measure_command(advice) if advice.missing else None,
        "runs": [str(run.path) for run in advice.runs],
        "not_included": not_included(advice),
    }


def _choice(one: Choice) -> dict[str, Any]:
    against = one.against
    return {
        "attn_implementation": one.implementation.name,
        "backend": one.implementation.backend,
        "total_ms": _interval(one.total_ms),
        "fitted": one.fitted or None,
        "why_not": one.why_not or None,
        "against_fastest": against
        and {
            "ratio": against.value,
            **json_fields(against, "low", "high", "paired"),
            "verdict": TIMES.get(against.word, against.word),
            "mark": mark_word(against.mark),
            "reasons": list(against.doubts),
        },
        "layers": [*map(_cell, one.cells)],
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        **json_fields(cell.asked, "layer", "count"),
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


def _longest(one: Longest) -> dict[str, Any]:
    known = one.context is not None
    return {
        "phase": one.phase,
        "attn_implementation": one.implementation.name,
        **json_fields(one, "context", "at_least"),
        "limit": one.limit if known else None,
        "found_by": one.found_by if known else None,
        "checked": one.checked or None,
        "source": one.words or None,
    }


def _interval(found: Interval | None) -> dict[str, Any] | None:
    known = found is not None and isfinite(found.value)
    return json_fields(found, "value", "low", "high") if known else None
