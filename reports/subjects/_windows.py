"""Windows of the counters: a quantity of a case, and who keeps the device busiest."""

from collections.abc import Iterable, Mapping
from typing import Any

from ...harness.stats.intervals import Interval, mean_interval
from ..data.row_groups import Row, by
from ._probe_tables import is_number, reading_text

Window = Mapping[str, Any]
HEADLINES = {  # utilization tier: its headline quantity, as part of a sentence; `derived` has none
    "gpm": ("sm_active_ratio", "the SMs active for"),
    "busy": ("kernel_busy_ratio", "some kernel running for"),
    "host": ("host_cpu_ratio", "the host's threads busy for"),
}
STATED_RATIO = 1.2  # a larger ratio of the highest to the lowest value is worth a sentence
PER = {"energy_j": "calls", "calls": "window_s"}
"""What some of them are divided by."""


def windows(row: Row, way: str = "eager") -> list[Window]:
    return [window for window in row.get("windows") or [] if window["way"] == way]


def observed(row: Row, column: str, way: str = "eager") -> Interval | None:
    """A headline quantity of one case; None if no window has it."""
    known = [window for window in windows(row, way) if is_number(window.get(column))]
    per = PER.get(column)
    values = [window[column] / (window[per] if per else 1) for window in known]
    return mean_interval(values, "window") if values else None


def missing(rows: Iterable[Row]) -> dict[str, list[str]]:
    """Why columns are missing: reason -> their names, each once."""
    every = (pair for row in rows for pair in (row.get("missing") or {}).items())
    by_reason = by(dict.fromkeys(every), lambda pair: pair[1])
    return {reason: [name for name, _ in pairs] for reason, pairs in by_reason.items()}


def finding(rows: list[Row]) -> str:
    """Which backend keeps the device busiest; "" if that is not known."""
    tiers = {row.get("utilization_tier") for row in rows}
    headline = HEADLINES.get(tiers.pop() or "") if len(tiers) == 1 else None
    if headline is None:
        return ""
    column, title = headline
    known = ((row["backend"], observed(row, column)) for row in rows)
    found = {backend: interval.value for backend, interval in known if interval is not None}
    if not found:
        return ""
    high, low = (pick(found, key=lambda one: found[one]) for pick in (max, min))
    most, least = (reading_text(column, found[one]) for one in (high, low))
    if len(found) < 2:
        return f"{high} keeps {title} {most} of the time"
    if found[low] and found[high] / found[low] < STATED_RATIO:
        both = " to ".join(dict.fromkeys((least, most)))
        return f"all keep {title} {both} of the time"
    return f"{high} keeps {title} {most} of the time, {low} {least}"
