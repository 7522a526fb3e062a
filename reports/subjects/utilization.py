"""Utilization: how much of the device was in use, energy per call, and the kernels of a call."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from ..data.row_groups import Row, groups, over_lengths
from ..data.run_meta import Meta
from ..elements import Block, Figure, Table, Text, note, table_of
from ..formatting import list_text
from ..quantity import Cell, Number, cell_text
from . import Subject, _gpu_use, _probe_tables
from ._over import MOST_PANELS, by_backend, common_caption, lines_over, panel, with_ends
from ._probe_tables import column_title, is_number, mean_text, reading_text
from ._windows import HEADLINES, finding, missing, observed, windows

TITLE = "Utilization"
SECTION = "device"
ORDER = 0
BOOKKEEPING = ("process", "way", "window_s", "calls")  # columns of a window that no probe measured
MOST_NAMES = 5
MOST_CASES = 200  # of all other readings
READINGS = "All other readings, with half the width of their 95 % interval over the windows"
NO_WINDOWS = (
    "No case has utilization windows. A scenario requests them with measure: [latency, memory,"
    " utilization, energy]."
)
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
    yield from _windows(rows, meta) if rows else [note(NO_WINDOWS)]
    observed_rows = [row for row in every if row.get("windows") or row.get("tables")]
    if reasons := missing(observed_rows):
        texts = [f"{list_text(names, MOST_NAMES)} ({why})" for why, names in reasons.items()]
        yield note(f"Missing, with the reason: {'; '.join(texts)}.")
    yield from _other_readings(observed_rows)
    yield from _probe_tables.tables(every)


def _windows(rows: list[Row], meta: Meta) -> Iterator[Block]:
    for tier in dict.fromkeys(row["utilization_tier"] for row in rows if row["utilization_tier"]):
        yield note(TIERS.get(tier, tier))
        yield from _over_n([row for row in rows if row["utilization_tier"] == tier], tier, meta)
    for group in groups(rows, None):
        if found := finding(group.rows):
            yield Text(text=f"{group.prefixed(found)}.")
    means: dict[str, Callable[[Any], Cell]] = {
        title: partial(_mean, column) for column, title in QUANTITIES.items()
    }
    watched = [one for one in _watched(rows) if windows(one.row, one.way)]
    yield table_of("Means over the windows", watched, CASE | means, optional=[*CASE, *means])
    if any(len(windows(row)) == 1 for row in rows):
        yield note(
            "Cases with one window have no interval. Counters that move in steps make their values"
            " uncertain by up to 10 %."
        )


class Watched(NamedTuple):
    """A case as its calls were launched."""

    problem: str
    row: Row
    way: str = "eager"


CASE: dict[str, Callable[[Any], Cell]] = {
    "problem": lambda one: one.problem,
    "backend": lambda one: one.row["backend"],
    "launched": lambda one: GRAPH if one.way == "graph" else "",
}


def _watched(rows: Sequence[Row]) -> list[Watched]:
    return [
        Watched(group.label, row, way)
        for group in groups(rows, None)
        for row in group.rows
        for way in dict.fromkeys(["eager", *launch_modes([row])])
    ]


def _mean(column: str, of: Watched) -> Number:
    """Of a bit mask all of its values."""
    if found := observed(of.row, column, of.way):
        masks = {one[column] for one in windows(of.row, of.way) if is_number(one.get(column))}
        texts = [reading_text(column, value) for value in sorted(masks)]
        is_mask = column.endswith("_mask")
        return Number(", ".join(texts)) if is_mask else mean_text(column, found)
    own_calls = (of.row.get("tables") or {}).get(column) if of.way == "eager" else None
    return Number(reading_text(column, own_calls) if is_number(own_calls) else "")


def _over_n(rows: Sequence[Row], tier: str, meta: Meta) -> Iterator[Figure]:
    """The headline quantity over N."""
    column = HEADLINES.get(tier, ("", ""))[0]
    ends, what = column.replace("ratio", "{}ratio"), QUANTITIES.get(column, "")
    known = [
        with_ends(row, ends, found) for row in rows if column and (found := observed(row, column))
    ]
    if drawn := over_lengths(known)[:MOST_PANELS]:
        yield Figure(
            title=f"{what} over N",
            caption=common_caption(drawn, meta),
            panels=tuple(
                panel(group, column=ends, y_label=what, unit="share", y_scale="linear")
                for group in drawn
            ),
            table=by_backend(
                f"{what} over N",
                *lines_over(drawn, "seq_len"),
                lambda row, _: _mean(column, Watched("", row)),
            ),
        )


def _other_readings(rows: Sequence[Row]) -> Iterator[Table]:
    """Every other number of the probes, also of those with calls of their own."""
    every = _watched(rows)
    sources = [
        one for of in every for one in (*windows(of.row, of.way), of.row.get("tables") or {})
    ]
    names = {name: None for one in sources for name, value in one.items() if is_number(value)}
    shown = [name for name in names if name not in (*BOOKKEEPING, *QUANTITIES)]
    columns: dict[str, Callable[[Watched], Cell]] = {
        "case": lambda of: ", ".join(filter(None, (cell_text(cell(of)) for cell in CASE.values()))),
        **{column_title(name): partial(_mean, name) for name in shown},
    }
    if shown:
        table = table_of(READINGS, every, columns, folded=True, most=MOST_CASES)
        yield replace(table, of_two_axes=True).upright
