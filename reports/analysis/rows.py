"""All cases as a table for people: what is equal in all rows is said once, every number has a unit
that fits.
"""

from collections.abc import Callable
from typing import Any

from ..data.row_groups import AXES, Row, axis_text, axis_title, problem, value_text
from ..formatting import bytes_text, flops_text, number_text, rate_text, time_text

_NUMBERS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(
        (
            "latency_ms",
            "latency_low_ms",
            "latency_high_ms",
            "wall_latency_ms",
            "hot_latency_ms",
            "graph_latency_ms",
        ),
        time_text,
    ),
    **dict.fromkeys(
        (
            "input_bytes",
            "peak_bytes",
            "predicted_peak_bytes",
            "output_bytes",
            "temporary_bytes",
            "minimal_bytes",
        ),
        bytes_text,
    ),
    "work_flops": flops_text,
    "achieved_flops_per_s": rate_text,
    "error_ratio": number_text,
}
# A cell has its unit beside it, so the title needs none.
_TITLES = {
    "latency_ms": "latency",
    "latency_low_ms": "95 % low",
    "latency_high_ms": "95 % high",
    "wall_latency_ms": "wall latency",
    "hot_latency_ms": "hot latency",
    "graph_latency_ms": "graph latency",
    "work_flops": "work",
    "peak_bytes": "peak",
    "predicted_peak_bytes": "predicted peak",
    "input_bytes": "inputs",
    "output_bytes": "output",
    "temporary_bytes": "temporaries",
    "minimal_bytes": "moves at least",
    "achieved_flops_per_s": "achieved",
}
_OUTCOME = (
    "status",
    "latency_ms",
    "latency_low_ms",
    "latency_high_ms",
    "peak_bytes",
    "predicted_peak_bytes",
    "input_bytes",
)
_ON_CUDA = ("wall_latency_ms", "hot_latency_ms", "graph_latency_ms")
_SPLIT = ("output_bytes", "temporary_bytes", "minimal_bytes")
_COST = (
    "work_flops",
    "achieved_flops_per_s",
    "error_ratio",
    "kernel",
    "stop",
    "processes",
    "blocks",
    "samples",
    "attempt",
    "reason",
)
_KEYS = ("backend", *AXES, *_OUTCOME, *_ON_CUDA, *_SPLIT, *_COST)
_NEVER_CONSTANT = ("backend", "seq_len", "status", "latency_ms", "peak_bytes")


def case_key(row: Row) -> str:
    """What a case is called on a page of several runs."""
    return f"{row['run']} {row['case']}"


def readable(rows: list[Row]) -> tuple[list[str], tuple[str, ...], list[tuple[str, ...]]]:
    """What is equal in all rows, in words; the titles of the columns that differ, and their
    cells.
    """
    rows = [row | problem(row) for row in rows]
    constant = [
        key
        for key in _KEYS
        if key not in _NEVER_CONSTANT and len({row.get(key) for row in rows}) <= 1
    ]
    columns = [key for key in _KEYS if key not in constant]
    same = [text for key in constant if rows and (text := _said(key, rows[0].get(key)))]
    return (
        same,
        tuple(map(_title, columns)),
        [tuple(_cell(key, row.get(key)) for key in columns) for row in rows],
    )


def _said(key: str, value: Any) -> str:
    if key in AXES:
        return axis_text(key, value)
    text = _cell(key, value)
    return f"{_title(key)} {text}" if text else ""


def _title(key: str) -> str:
    return _TITLES.get(key, axis_title(key))


def _cell(key: str, value: Any) -> str:
    if value is None:
        return ""
    if key in _NUMBERS:
        return _NUMBERS[key](value)
    return axis_text(key, value) if key == "causal" else value_text(key, value)
