"""All cases as a readable table: values that all rows share once, numbers with their units."""

from typing import Any

from ..data.columns import COLUMNS
from ..data.row_groups import AXES, Row, axis_text, axis_title, problem, value_text
from ..formatting import (
    STATUS_WORDS,
    kernel_text,
)

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
    return _titled(key) or axis_title(key)


def _titled(key: str) -> str:
    return COLUMNS[key].title if key in COLUMNS else ""


def _cell(key: str, value: Any) -> str:
    if value is None:
        return ""
    if _titled(key):
        return COLUMNS[key].text(value)
    if key == "status":
        return STATUS_WORDS.get(value, str(value))
    return axis_text(key, value) if key == "causal" else value_text(key, value)
