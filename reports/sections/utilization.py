"""Utilization: how much of the device was in use, energy per call, and the kernels of a call."""

from collections.abc import Iterator

import pandas as pd

from ...harness.stats.intervals import Interval
from ..analysis import utilization
from ..data.row_groups import Group, Row, groups, records
from ..data.run_meta import Meta, caption
from ..elements import Block, Table, Text, note
from ..formatting import beyond_text, list_text, number_text
from . import _probe_tables, _timeline

TITLE = "Utilization"
ORDER = 45
NEEDS = ("windows", "utilization_tier")

MOST_NAMES = 5
MOST_READINGS = 1000
GRAPH = "as a CUDA graph, without launch gaps"
TIERS = {
    "gpm": "The GPU's performance counters tell what share of its SMs was active.",
    "busy": (
        "This GPU, or its driver, has no performance counters. The table has the share of the time"
        " in which any kernel ran: one small kernel counts as much as a full GPU."
    ),
    "derived": (
        "No counter could be read. The table has work over time; the share of the measured peak is"
        " in the roofline."
    ),
    "host": (
        "Measured without a GPU's counters: the table has the CPU time of the process over the time"
        " of its threads."
    ),
}


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    every = records(frame)
    rows = [row for row in every if row.get("windows")]
    if rows:
        yield from _windows(rows, meta)
        yield from _timeline.figures(rows, meta)
        yield from _missing(rows)
    else:
        yield note(
            "No case has utilization windows. A scenario requests them with measure: [latency,"
            " memory, utilization, energy]."
        )
    yield from _other_readings([row for row in every if row.get("windows") or row.get("tables")])
    yield from _probe_tables.tables(every)


def _windows(rows: list[Row], meta: Meta) -> Iterator[Block]:
    for tier in dict.fromkeys(row["utilization_tier"] for row in rows if row["utilization_tier"]):
        yield note(TIERS.get(tier, tier))
    for group in groups(rows, None):
        if finding := utilization.finding(group.rows):
            yield Text(text=f"{group.prefixed(finding)}.")
        for way in utilization.launch_modes(group.rows):
            yield _headlines(group, meta, way)
    if any(len(utilization.windows(row)) == 1 for row in rows):
        yield note(
            "Cases with one window have no interval. Counters that move in steps make their values"
            " uncertain by up to 10 %."
        )


def _headlines(group: Group, meta: Meta, way: str) -> Table:
    names = utilization.observed_names(group.rows, way)
    return Table(
        title=caption(group.problem, meta) + (f" · {GRAPH}" if way == "graph" else ""),
        columns=("backend", *(utilization.QUANTITIES[name].title for name in names)),
        rows=tuple(
            (row["backend"], *(_cell(row, name, way) for name in names))
            for row in group.rows
            if utilization.windows(row, way)
        ),
    )


def _other_readings(rows: list[Row]) -> Iterator[Block]:
    """Every other column of the probes, a line per case and column."""
    modes, found = ["eager", *utilization.launch_modes(rows)], groups(rows, None)
    modes = list(dict.fromkeys(modes))
    lines = [
        (group.label, row["backend"], way, *reading.cells)
        for group in found
        for row in group.rows
        for way in modes
        for reading in utilization.other_readings(row, way)
    ]
    if not lines:
        return
    shown = {
        "problem": any(group.label for group in found),
        "backend": True,
        "launched": len(modes) > 1,
        **dict.fromkeys(("reading", "mean", "lowest to highest", "windows"), True),
    }
    yield Table(
        title="All other readings, with half the width of their 95 % interval over the windows",
        columns=tuple(name for name, kept in shown.items() if kept),
        rows=tuple(
            tuple(cell for cell, kept in zip(line, shown.values(), strict=True) if kept)
            for line in lines[:MOST_READINGS]
        ),
        folded=True,
    )
    if len(lines) > MOST_READINGS:
        yield note(
            f"The first {MOST_READINGS} of {len(lines)} readings; rows.jsonl has them all, under"
            " windows and tables."
        )


def _missing(rows: list[Row]) -> Iterator[Block]:
    reasons = utilization.missing(rows)
    if not reasons:
        return
    texts = [f"{list_text(shortened(names))} ({reason})" for reason, names in reasons.items()]
    yield note(f"Missing, with the reason: {'; '.join(texts)}.")
    if any(len(names) > MOST_NAMES for names in reasons.values()):
        yield Table(
            title="All readings that are missing",
            columns=("reading", "column", "reason"),
            rows=tuple(
                (utilization.column_title(name), name, reason)
                for reason, names in reasons.items()
                for name in names
            ),
            folded=True,
        )


def _cell(row: Row, name: str, way: str) -> str:
    found = utilization.observed(row, name, way)
    if found is None:
        return ""
    text = value_text(found, utilization.QUANTITIES[name].unit)
    is_share = utilization.QUANTITIES[name].unit == "share"
    return text + beyond_text(found.value, utilization.OF.get(name, "")) if is_share else text


def value_text(found: Interval, unit: str) -> str:
    """A value with half the width of its interval: `81 % ± 2`, `3.21 J ± 0.05`."""
    scale = 1.0
    if unit == "share":
        scale, unit = 100, "%"
    elif unit == "J" and found.value < 1:
        scale, unit = 1e3, "mJ"
    half = utilization.half_width(found)
    text = "" if half is None else f" ± {number_text(half * scale)}"
    return f"{number_text(found.value * scale)}{text} {unit}".rstrip()


def shortened(names: list[str]) -> list[str]:
    if len(names) <= MOST_NAMES:
        return names
    return [*names[: MOST_NAMES - 1], f"{len(names) - MOST_NAMES + 1} more"]
