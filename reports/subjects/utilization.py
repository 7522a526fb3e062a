"""Utilization: how much of the device was in use, energy per call, and the kernels of a call."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from ...harness.stats.intervals import mean_interval
from ..data.row_groups import Row, groups, over_lengths
from ..data.run_meta import Meta, caption
from ..elements import Block, Figure, Text, note, table_of
from ..formatting import list_text
from ..quantity import Cell, Number
from . import Subject, _gpu_use, _probe_tables
from ._over import MOST_PANELS, by_backend, common_caption, lines_over, panel, with_ends
from ._probe_tables import column_title, is_number, mean_text, reading_text
from ._windows import HEADLINES, finding, missing, observed, windows

TITLE = "Utilization"
SECTION = "device"
ORDER = 0
BOOKKEEPING = ("process", "way", "window_s", "calls")  # columns of a window that no probe measured
MOST_NAMES = 5
MOST_READINGS = 1000
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


def other_readings(row: Row, way: str = "eager") -> dict[str, list[float]]:
    """The values of every column that no headline quantity shows, a window each.

    Numbers of probes with calls of their own count as one window of eager calls.
    """
    own_calls = [row.get("tables") or {}] if way == "eager" else []
    values: dict[str, list[float]] = {}
    for window in (*windows(row, way), *own_calls):
        for name, value in window.items():
            if is_number(value) and name not in (*BOOKKEEPING, *QUANTITIES):
                values.setdefault(name, []).append(value)
    return values


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
        for way in launch_modes(group.rows):
            columns = {name: partial(_mean, column, way) for column, name in QUANTITIES.items()}
            yield table_of(
                caption(group.problem, meta) + (f" · {GRAPH}" if way == "graph" else ""),
                [row for row in group.rows if windows(row, way)],
                {"backend": lambda row: row["backend"], **columns},
                optional=[*columns],
            )
    if any(len(windows(row)) == 1 for row in rows):
        yield note(
            "Cases with one window have no interval. Counters that move in steps make their values"
            " uncertain by up to 10 %."
        )


def _mean(column: str, way: str, row: Row) -> Number:
    found = observed(row, column, way)
    return Number("") if found is None else mean_text(column, found)


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
                lambda row, _: _mean(column, "eager", row),
                folded=True,
            ),
        )


def _other_readings(rows: list[Row]) -> Iterator[Block]:
    """Every other column of the probes, a line per case and column."""
    modes = list(dict.fromkeys(["eager", *launch_modes(rows)]))
    lines = [
        (group.label, row["backend"], way, name, values)
        for group in groups(rows, None)
        for row in group.rows
        for way in modes
        for name, values in other_readings(row, way).items()
    ]
    columns: dict[str, Callable[[Any], Cell]] = {
        "problem": itemgetter(0),
        "backend": itemgetter(1),
        "launched": lambda line: line[2] if len(modes) > 1 else "",
        "reading": lambda line: column_title(line[3]),
        "mean": lambda line: _mean_of(*line[3:]),
        "lowest to highest": lambda line: _span(*line[3:]),
        "windows": lambda line: len(line[4]),
    }
    if lines:
        yield table_of(
            READINGS,
            lines,
            columns,
            optional=("problem", "launched"),
            folded=True,
            most=MOST_READINGS,
        )


def _mean_of(name: str, values: list[float]) -> Number:
    """A bit mask has none."""
    is_mask = name.endswith("_mask")
    return Number("") if is_mask else mean_text(name, mean_interval(values, "window"))


def _span(name: str, values: list[float]) -> Number:
    """The lowest and the highest value; all values of a bit mask."""
    texts = [reading_text(name, value) for value in sorted({*values})]
    if name.endswith("_mask"):
        return Number(", ".join(texts))
    return Number(" to ".join(dict.fromkeys((texts[0], texts[-1]))))
