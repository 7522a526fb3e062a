"""Advice as JSON; docs/format.md describes it."""

from math import isfinite
from typing import Any

from ...harness.stats.intervals import Interval
from ..facts import mark_word
from ..words import TIMES
from . import words
from .answer import Advice
from .choices import Cell, Choice

SCHEMA = 1


def document(advice: Advice) -> dict[str, Any]:
    """What is not known is null."""
    asked = advice.inquiry
    missing = [(of, one) for of in advice.decisions for one in of.missing]
    return {
        "schema": SCHEMA,
        "answer": words.headline(advice),
        "sentences": list(words.beside_tables(advice)),
        **_fields(asked, "model model_type device device_name dtype batch tp most_context"),
        **_fields(asked, "memory_bytes weight_bytes devices_for_weights dtype_guess kv_dtype"),
        "weights_source": asked.weights_words or None,
        "decisions": [
            {
                **_fields(one, "phase context"),
                "attn_implementation": one.name_of_best or None,
                "choices": [*map(_choice, one.choices)],
            }
            for one in advice.decisions
        ],
        "memory": [
            {
                **_fields(one, "phase implementation context weight_bytes cache_bytes"),
                **_fields(one, "paged_cache_bytes state_bytes kept_bytes attention_bytes"),
                **_fields(one, "total_bytes at_most source"),
            }
            for one in advice.needs
        ],
        "sequences": [one._asdict() for one in advice.sequences],
        "longest": [
            {
                **_fields(one, "phase attn_implementation context at_least limit source"),
                **({"limit": None} if one.context is None else {}),
            }
            for one in advice.longest
        ],
        "traps": advice.traps,
        "not_measured": [_fields(one, "layer count why") for one in advice.not_measured],
        "other_layers": dict(asked.others),
        "states": dict(asked.states),
        "cautions": list(asked.cautions),
        "missing": [
            {**_fields(of, "phase context"), "implementation": one.name} for of, one in missing
        ],
        "commands": list(words.run_commands(advice)),
        "measure": words.measure_command(advice) if missing else None,
        "runs": [str(run.path) for run in advice.runs],
        "not_included": words.not_included(advice),
    }


def _choice(one: Choice) -> dict[str, Any]:
    ratio = one.against
    return {
        "attn_implementation": one.implementation.name,
        "backend": one.implementation.backend,
        **_fields(one, "total_ms why_not"),
        "against_fastest": ratio
        and {
            "ratio": ratio.value,
            **_fields(ratio, "low high paired"),
            "verdict": TIMES.get(ratio.word, ratio.word),
            "mark": mark_word(ratio.mark),
            "reasons": list(ratio.doubts),
        },
        "layers": [*map(_cell, one.cells)],
    }


def _cell(cell: Cell) -> dict[str, Any]:
    rate = cell.rate
    return {
        **_fields(cell.asked, "layer count"),
        **_fields(cell, "status reason call_ms peak_bytes kernel"),
        "bytes_per_s": _value(rate.bytes_per_s) if rate else None,
        "bandwidth_ratio": _value(rate.share) if rate else None,
        "run": cell.stored.run.path.name if cell.stored else None,
        "case": cell.stored.row["case"] if cell.stored else None,
    }


def _fields(of: object, names: str) -> dict[str, Any]:
    """Attributes; null for a number that is not finite, and for a text that says nothing."""
    return {name: _value(getattr(of, name)) for name in names.split()}


def _value(found: Any) -> Any:
    if isinstance(found, Interval):
        return _fields(found, "value low high") if isfinite(found.value) else None
    return None if found == "" or (isinstance(found, float) and not isfinite(found)) else found
