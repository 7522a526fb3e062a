"""Utilization: how much of the device was in use, energy per call, and the kernels of a call."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from ...harness.stats.intervals import mean_interval
from ..data.row_groups import Group, Row, groups
from ..data.run_meta import Meta, caption
from ..elements import Block, Table, Text, note, table_of
from ..formatting import list_text
from ..quantity import Number
from . import Subject, _gpu_use, _probe_tables
from ._probe_tables import column_title, mean_text, reading_text
from ._windows import finding, is_number, missing, observed, windows

TITLE = "Utilization"
SECTION = "time"
ORDER = 45
BOOKKEEPING = ("process", "way", "window_s", "calls")  # columns of a window that no probe measured
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


class Reading(NamedTuple):
    """One column over the windows of a case, as text.

    `span`: the lowest and the highest value, or all values of a bit mask, which has no mean.
    """

    title: str
    mean: str
    span: str
    windows: int


QUANTITIES = {
    "sm_active_ratio": "SMs active",
    "sm_occupancy_ratio": "occupancy",
    "any_tensor_ratio": "tensor cores",
    "dram_bandwidth_ratio": "memory bandwidth",
    "kernel_busy_ratio": "kernels run",
    "host_cpu_ratio": "threads busy",
    "power_w": "power",
    "energy_j": "energy per call",
    "sm_clock_mhz": "SM clock",
    "temperature_c": "temperature",
    "calls": "calls per second",
}
"""The headline quantities of the windows, by column, with their titles."""


def launch_modes(rows: Iterable[Row]) -> list[str]:
    """`eager`, `graph`: the ways in which the windows of these rows launched their calls."""
    return list(dict.fromkeys(window["way"] for row in rows for window in row.get("windows") or []))


# ---- every other column, whichever probe wrote it ------------------------------------------------


def other_readings(row: Row, way: str = "eager") -> list[Reading]:
    """Every number that no headline quantity shows.

    Numbers of probes with calls of their own count as one window of eager calls.
    """
    own_calls = [row.get("tables") or {}] if way == "eager" else []
    values: dict[str, list[float]] = {}
    for window in (*windows(row, way), *own_calls):
        for name, value in window.items():
            if is_number(value):
                values.setdefault(name, []).append(value)
    shown = {*BOOKKEEPING, *QUANTITIES}
    return [_reading(name, found) for name, found in values.items() if name not in shown]


def _reading(name: str, values: list[float]) -> Reading:
    title, texts = column_title(name), [reading_text(name, value) for value in sorted(set(values))]
    if name.endswith("_mask"):
        return Reading(title, "", ", ".join(texts), len(values))
    mean = mean_text(name, mean_interval(values, "window"))
    return Reading(title, mean, " to ".join(dict.fromkeys((texts[0], texts[-1]))), len(values))


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card says how busy a GPU was; a line, that nothing counted it."""
    unknown = _gpu_use.not_measured(rows, meta)
    return Subject(
        card=_gpu_use.card(rows, meta),
        lines=(unknown,) if unknown else (),
        blocks=tuple(_blocks(rows, meta)),
    )


def _blocks(every: Sequence[Row], meta: Meta) -> Iterator[Block]:
    rows = [row for row in every if row.get("windows")]
    if rows:
        yield from _windows(rows, meta)
    else:
        yield note(
            "No case has utilization windows. A scenario requests them with measure: [latency,"
            " memory, utilization, energy]."
        )
    observed_rows = [row for row in every if row.get("windows") or row.get("tables")]
    if reasons := missing(observed_rows):
        texts = [f"{list_text(names, MOST_NAMES)} ({why})" for why, names in reasons.items()]
        yield note(f"Missing, with the reason: {'; '.join(texts)}.")
    yield from _other_readings(observed_rows)
    yield from _probe_tables.tables(every)


def _windows(rows: list[Row], meta: Meta) -> Iterator[Block]:
    for tier in dict.fromkeys(row["utilization_tier"] for row in rows if row["utilization_tier"]):
        yield note(TIERS.get(tier, tier))
    for group in groups(rows, None):
        if found := finding(group.rows):
            yield Text(text=f"{group.prefixed(found)}.")
        for way in launch_modes(group.rows):
            yield _headlines(group, meta, way)
    if any(len(windows(row)) == 1 for row in rows):
        yield note(
            "Cases with one window have no interval. Counters that move in steps make their values"
            " uncertain by up to 10 %."
        )


def _headlines(group: Group, meta: Meta, way: str) -> Table:
    def mean(column: str, row: Row) -> Number:
        found = observed(row, column, way)
        return Number("") if found is None else mean_text(column, found)

    return table_of(
        caption(group.problem, meta) + (f" · {GRAPH}" if way == "graph" else ""),
        [row for row in group.rows if windows(row, way)],
        {
            "backend": lambda row: row["backend"],
            **{title: partial(mean, column) for column, title in QUANTITIES.items()},
        },
        optional=QUANTITIES.values(),
    )


def _other_readings(rows: list[Row]) -> Iterator[Block]:
    """Every other column of the probes, a line per case and column."""
    modes, found = list(dict.fromkeys(["eager", *launch_modes(rows)])), groups(rows, None)
    lines = [
        (group.label, row["backend"], way, reading)
        for group in found
        for row in group.rows
        for way in modes
        for reading in other_readings(row, way)
    ]
    if not lines:
        return
    yield table_of(
        "All other readings, with half the width of their 95 % interval over the windows",
        lines,
        {
            "problem": lambda line: line[0],
            "backend": lambda line: line[1],
            "launched": lambda line: line[2] if len(modes) > 1 else "",
            "reading": lambda line: line[3].title,
            "mean": lambda line: Number(line[3].mean),
            "lowest to highest": lambda line: Number(line[3].span),
            "windows": lambda line: line[3].windows,
        },
        optional=("problem", "launched"),
        folded=True,
        most=MOST_READINGS,
    )
