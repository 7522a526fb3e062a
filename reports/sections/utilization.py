"""What the device did meanwhile: how much of it was at work, and what a call cost in energy, per
problem and backend.
"""

from collections.abc import Iterator

import pandas as pd

from ...harness.stats import Interval
from ..analysis import utilization
from ..data.run_meta import Meta, caption
from ..data.row_groups import Group, Row, groups, records
from ..elements import Block, Table, Text
from ..formatting import list_text, number_text
from . import _timeline

TITLE = "What the device did meanwhile"
ORDER = 45
NEEDS = ("windows", "utilization_tier")

MOST_NAMES = 5
TIERS = {
    "gpm": "The GPU's own performance counters say which share of its SMs was at work.",
    "busy": (
        "This GPU, or its driver, gives no performance counters. What is shown is the share of the"
        " time in which any kernel ran: one small kernel counts as much as a full GPU."
    ),
    "derived": (
        "No counter could be read. What is shown is work over time; the share of the measured peak"
        " stands in the roofline."
    ),
    "host": (
        "Measured without a GPU's counters: what is shown is the CPU time of the process over the"
        " time of its threads."
    ),
}


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    rows = [row for row in records(frame) if row.get("windows")]
    if not rows:
        yield Text(
            text=(
                "No case was watched. A scenario asks for it with measure: [latency, memory,"
                " utilization, energy]."
            ),
            kind="note",
        )
        return
    for tier in dict.fromkeys(row["utilization_tier"] for row in rows if row["utilization_tier"]):
        yield Text(text=TIERS.get(tier, tier), kind="note")
    for group in groups(rows, None):
        said = utilization.finding(group.rows)
        if said:
            yield Text(text=f"{group.said(said)}.")
        for way in utilization.ways(group.rows):
            yield _table(group, meta, way)
    yield from _timeline.figures(rows, meta)
    if reasons := utilization.missing(rows):
        lines = [f"{list_text(shortened(names))} ({reason})" for reason, names in reasons.items()]
        yield Text(text=f"Missing, with the reason: {'; '.join(lines)}.", kind="note")
    if any(len(utilization.windows(row)) == 1 for row in rows):
        yield Text(
            text=(
                "Cases with one window have no interval: counters that move in steps make it"
                " uncertain by up to 10 %."
            ),
            kind="note",
        )


def _table(group: Group, meta: Meta, way: str) -> Table:
    names = utilization.told(group.rows, way)
    titles = [f"{utilization.QUANTITIES[name].title}" for name in names]
    rows = tuple(
        (row["backend"], *(_cell(row, name, way) for name in names))
        for row in group.rows
        if utilization.windows(row, way)
    )
    as_graph = " · as a CUDA graph, without launch gaps" if way == "graph" else ""
    return Table(
        title=f"{caption(group.problem, meta)}{as_graph}", columns=("backend", *titles), rows=rows
    )


def _cell(row: Row, name: str, way: str) -> str:
    found = utilization.seen(row, name, way)
    return "" if found is None else value_text(found, utilization.QUANTITIES[name].unit)


def value_text(found: Interval, unit: str) -> str:
    """A value with half the width of its interval: `81 % ± 2`, `3.21 J ± 0.05`."""
    scale, shown = (
        (100, "%")
        if unit == "share"
        else (1e3, "mJ")
        if unit == "J" and found.value < 1
        else (1, unit)
    )
    half = (
        f" ± {number_text(utilization.half_width(found) * scale)}"
        if utilization.exact(found)
        else ""
    )
    return f"{number_text(found.value * scale)}{half} {shown}".rstrip()


def shortened(names: list[str]) -> list[str]:
    return (
        names
        if len(names) <= MOST_NAMES
        else [*names[: MOST_NAMES - 1], f"{len(names) - MOST_NAMES + 1} more"]
    )
