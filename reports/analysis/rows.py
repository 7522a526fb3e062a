"""All cases as a readable table: values that all rows share once, numbers with their units."""

from collections.abc import Callable
from typing import Any

from ..data.row_groups import AXES, Row, axis_text, axis_title, problem, value_text
from ..formatting import (
    STATUS_WORDS,
    bandwidth_text,
    bytes_text,
    flops_text,
    kernel_text,
    number_text,
    percent_text,
    rate_text,
    time_text,
)

# Columns with a number: their title, and how the number is written (with its unit).
_NUMBERS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "latency_ms": ("latency", time_text),
    "latency_low_ms": ("95 % low", time_text),
    "latency_high_ms": ("95 % high", time_text),
    "wall_latency_ms": ("wall latency", time_text),
    "hot_latency_ms": ("hot latency", time_text),
    "graph_latency_ms": ("graph latency", time_text),
    "peak_bytes": ("peak", bytes_text),
    "workspace_bytes": ("kept between calls", bytes_text),
    "outside_bytes": ("outside torch", bytes_text),
    "predicted_peak_bytes": ("predicted peak", bytes_text),
    "input_bytes": ("inputs", bytes_text),
    "output_bytes": ("output", bytes_text),
    "temporary_bytes": ("temporaries", bytes_text),
    "saved_bytes": ("kept for backward", bytes_text),
    "minimal_bytes": ("minimal traffic", bytes_text),
    "work_flops": ("work", flops_text),
    "achieved_flops_per_s": ("achieved", rate_text),
    "decode_bytes_per_s": ("moved", bandwidth_text),
    "decode_bandwidth_ratio": ("of bandwidth", percent_text),
    "decode_bandwidth_low_ratio": ("its 95 % low", percent_text),
    "decode_bandwidth_high_ratio": ("its 95 % high", percent_text),
    "error_ratio": ("error ratio", number_text),
}
_RESULT = ("status", "latency_ms", "latency_low_ms", "latency_high_ms")
_PEAKS = ("peak_bytes", "workspace_bytes", "outside_bytes", "predicted_peak_bytes", "input_bytes")
_ON_CUDA = ("wall_latency_ms", "hot_latency_ms", "graph_latency_ms")
_SPLIT = ("output_bytes", "temporary_bytes", "saved_bytes", "minimal_bytes")
_BANDWIDTH = tuple(f"decode_bandwidth_{name}ratio" for name in ("", "low_", "high_"))
_COST = (
    *("work_flops", "achieved_flops_per_s", "decode_bytes_per_s", *_BANDWIDTH),
    *("error_ratio", "kernel"),
)
_SAMPLING = ("stop", "processes", "blocks", "samples", "attempt", "reason")
_KEYS = ("backend", *AXES, *_RESULT, *_PEAKS, *_ON_CUDA, *_SPLIT, *_COST, *_SAMPLING)
_NEVER_CONSTANT = ("backend", "seq_len", "status", "latency_ms", "peak_bytes")


def readable(rows: list[Row]) -> tuple[list[str], tuple[str, ...], list[tuple[str, ...]]]:
    """What is equal in all rows, the titles of the other columns, and their cells."""
    rows = [row | problem(row) | {"kernel": _kernel(row)} for row in rows]
    constant = [
        key
        for key in _KEYS
        if key not in _NEVER_CONSTANT and len({row.get(key) for row in rows}) <= 1
    ]
    columns = [key for key in _KEYS if key not in constant]
    same = [text for key in constant if rows and (text := _equal_text(key, rows[0].get(key)))]
    cells = [tuple(_cell(key, row.get(key)) for key in columns) for row in rows]
    return same, tuple(map(_title, columns)), cells


def _kernel(row: Row) -> str | None:
    return kernel_text(row.get("kernel"), row.get("kernel_generation")) or None


def _equal_text(key: str, value: Any) -> str:
    if key in AXES:
        return axis_text(key, value)
    text = _cell(key, value)
    return f"{_title(key)} {text}" if text else ""


def _title(key: str) -> str:
    return _NUMBERS[key][0] if key in _NUMBERS else axis_title(key)


def _cell(key: str, value: Any) -> str:
    if value is None:
        return ""
    if key in _NUMBERS:
        return _NUMBERS[key][1](value)
    if key == "status":
        return STATUS_WORDS.get(value, str(value))
    return axis_text(key, value) if key == "causal" else value_text(key, value)
