"""How busy the GPU is: what of it each backend keeps at work and what is lacking; all readings of
the probes, and the kernels of a call.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from ..data.row_groups import Group, Row, backends, case_key, groups
from ..data.run_meta import Meta, caption, ours, scenario_name
from ..elements import Bar, Bars, Block, Card, Marked, Table, note, table_of
from ..formatting import list_text
from ..quantity import Cell, Number, Quantity
from . import Subject
from ._race import size_of
from ._readings import (
    column_title,
    is_number,
    launch_modes,
    longest_kernels,
    mean_text,
    missing,
    observed,
    reading_text,
    tables,
    windows,
)

TITLE = "Utilization"
SECTION = "device"
ORDER = 0
BOOKKEEPING = ("process", "way", "window_s", "calls")  # columns of a window that no probe measured
MOST_NAMES = 5
MOST_CASES = 200  # of all other readings
READINGS = "All readings: means over the windows ± half of their 95 % interval"
NO_WINDOWS = "No case has utilization windows: --measure latency,memory,utilization,energy."
NOT_MEASURED = "SM utilization: not measured"
ONE_WINDOW = "One window per case: no interval."
GRAPH = "as a CUDA graph, without launch gaps"
TIERS = {
    "busy": (
        "This GPU, or its driver, has no performance counters. NVML tells how long any kernel ran:"
        " one small kernel counts as much as a full GPU."
    ),
    "derived": "No counter could be read: work over time is in the roofline.",
    "host": "Without a GPU's counters: the CPU time of the process over that of its threads.",
}
HEADLINES = {  # utilization tier: its headline quantity, as part of a sentence; `derived` has none
    "gpm": ("sm_active_ratio", "the SMs active for"),
    "busy": ("kernel_busy_ratio", "some kernel running for"),
    "host": ("host_cpu_ratio", "the host's threads busy for"),
}
STATED_RATIO = 1.2  # a larger ratio of the highest to the lowest value is worth a sentence
ACTIVE, BUSY = "sm_active_ratio", "kernel_busy_ratio"
PARTS = (ACTIVE, "any_tensor_ratio", "dram_bandwidth_ratio")
QUANTITIES = {
    ACTIVE: "SMs active",
    "sm_occupancy_ratio": "occupancy",
    "any_tensor_ratio": "tensor cores",
    "dram_bandwidth_ratio": "memory bandwidth",
    BUSY: "a kernel ran (NVML)",
    "host_cpu_ratio": "threads busy",
    "power_w": "power",
    "energy_j": "energy per call",
    "sm_clock_mhz": "SM clock",
    "temperature_c": "temperature",
    "calls": "calls per second",
}
"""The headline quantities of the windows, by column, with their titles."""
FILLED_RATIO = 0.8  # of the SMs: below it something is lacking
GAPS, FEW, IDLE = "launch gaps", "too few blocks for the SMs", "idle SMs"


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card says how busy a GPU was; a line, that nothing counted it."""
    unknown = _not_measured(rows, meta)
    return Subject(
        card=_card(rows, meta),
        lines=(unknown,) if unknown else (),
        blocks=tuple(_blocks(rows)),
    )


# ---- the card ------------------------------------------------------------------------------------


def _not_measured(rows: Sequence[Row], meta: Meta) -> str:
    """That a GPU was timed without a window, and what takes one; "" if not so."""
    mine = ours(rows, meta)
    timed = [row for row in mine if row["device"] == "cuda" and row.get("latency_ms") is not None]
    if not timed or any(map(windows, rows)):
        return ""
    run = meta[timed[0]["run"]]
    shipped = str(run["scenario"].get("source") or "").startswith("scenarios/")
    what = f"attnbench run {scenario_name(run)}" if shipped else "the same command with"
    return f"{NOT_MEASURED}; `{what} --measure latency,memory,utilization,energy` measures it."


def _card(rows: Sequence[Row], meta: Meta) -> Card | None:
    """On the longest problem that most backends finished; None without a window on a GPU."""
    watched = [row for row in rows if row["device"] == "cuda" and windows(row)]
    if not watched:
        return None
    every = groups(watched, None)
    group = max(every, key=lambda one: [len(backends(one.rows)), *size_of(one.rows[0])])
    least = min(group.rows, key=lambda row: _value(row, ACTIVE) or 0.0)
    unknown = f"How many SMs were active is not known: {_reason(least)}"
    kernels = longest_kernels(group.rows)
    return Card(
        title="How busy is the GPU",
        subtitle=f"at {group.at}",
        sentence=f"{busiest(group.rows) or unknown}.",
        picture=_bars(group, meta),
        decisions=kernels,
        note=ONE_WINDOW if all(len(windows(row)) == 1 for row in watched) else "",
        wide=kernels is None,
    )


def busiest(rows: Sequence[Row]) -> str:
    """Which backend keeps the device busiest; "" if that is not known."""
    tiers = {row.get("utilization_tier") for row in rows}
    headline = HEADLINES.get(tiers.pop() or "") if len(tiers) == 1 else None
    if headline is None:
        return ""
    column, title = headline
    found = {row["backend"]: value for row in rows if (value := _value(row, column)) is not None}
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


def _value(row: Row, column: str) -> float | None:
    found = observed(row, column)
    return None if found is None else found.value


def _text(column: str, row: Row) -> Number:
    found = _value(row, column)
    return Number("" if found is None else reading_text(column, found))


def _lacking(row: Row) -> str:
    """Why not all SMs are active; calls in a CUDA graph show how much is launch gaps."""
    active, graph_ms = _value(row, ACTIVE), row.get("graph_latency_ms")
    if active is None:
        return f"not measured: {_reason(row)}"
    if active >= FILLED_RATIO:
        return ""
    if graph_ms is None or graph_ms != graph_ms:
        return IDLE
    loops = windows(row)
    call_ms = 1e3 * sum(one["window_s"] for one in loops) / sum(one["calls"] for one in loops)
    return GAPS if 1 - graph_ms / call_ms >= (1 - active) / 2 else FEW


def _reason(row: Row) -> str:
    """Why the SMs were not counted."""
    found = (why for why, names in missing([row]).items() if ACTIVE in names)
    why = next(found, "the driver gave no counter")
    return "this GPU has no GPM" if "Hopper" in why else why


def _energy(row: Row) -> Cell:
    found = observed(row, "energy_j")
    return "" if found is None else Quantity.of(found, "j")


def _bars(group: Group, meta: Meta) -> Bars:
    columns: dict[str, Callable[[Row], Cell | Marked]] = {
        **{QUANTITIES[column]: partial(_text, column) for column in (*PARTS, BUSY)},
        "energy per call": _energy,
        "what is lacking": _lacking,
    }
    return Bars(
        title="How busy is the GPU",
        caption=caption(group.problem, meta),
        description=(
            "Bars: the share of the SMs that were active, of the cycles in which tensor cores"
            " worked, and of the memory's bandwidth. The table has every number."
        ),
        groups=tuple((_heading(row), tuple(_parts(row))) for row in group.rows),
        table=table_of(
            f"How busy is the GPU · {group.at}",
            group.rows,
            {"backend": lambda row: row["backend"], **columns},
            case=case_key,
            optional=[*columns],
        ),
    )


def _heading(row: Row) -> str:
    energy = _energy(row)
    per_call = f"{energy.number} per call" if isinstance(energy, Quantity) else ""
    parts = ", ".join(filter(None, (per_call, _lacking(row))))
    return ": ".join(filter(None, (row["backend"], parts)))


def _parts(row: Row) -> Iterator[Bar]:
    known = [column for column in PARTS if _value(row, column) is not None]
    for column in known or [BUSY] * (_value(row, BUSY) is not None):
        share, text = min(1.0, _value(row, column) or 0.0), _text(column, row)
        yield Bar(backend=row["backend"], label=QUANTITIES[column], share=share, note=text)


# ---- all readings --------------------------------------------------------------------------------


class Watched(NamedTuple):
    """A case as its calls were launched."""

    problem: str
    row: Row
    way: str

    @property
    def name(self) -> str:
        how = GRAPH if self.way == "graph" else ""
        return ", ".join(filter(None, (self.problem, self.row["backend"], how)))


def _blocks(every: Sequence[Row]) -> Iterator[Block]:
    rows = [row for row in every if row.get("windows")]
    if not rows:
        yield note(NO_WINDOWS)
    for tier in dict.fromkeys(row["utilization_tier"] for row in rows):
        if tier in TIERS:
            yield note(TIERS[tier])
    read = [row for row in every if row.get("windows") or row.get("tables")]
    yield from _readings(read)
    if reasons := missing(read):
        texts = [f"{list_text(names, MOST_NAMES)} ({why})" for why, names in reasons.items()]
        yield note(f"Missing, with the reason: {'; '.join(texts)}.")
    yield from tables(every)


def _readings(rows: Sequence[Row]) -> Iterator[Table]:
    """Every number of the probes, those of the headlines first."""
    every = [
        Watched(group.label, row, way)
        for group in groups(rows, None)
        for row in group.rows
        for way in dict.fromkeys(["eager", *launch_modes([row])])
    ]
    sources = [
        one for of in every for one in (*windows(of.row, of.way), of.row.get("tables") or {})
    ]
    names = {name: None for one in sources for name, value in one.items() if is_number(value)}
    titles = {name: column_title(name) for name in names if name not in BOOKKEEPING} | QUANTITIES
    columns: dict[str, Callable[[Watched], Cell]] = {
        "case": lambda of: of.name,
        **{titles[name]: partial(_mean, name) for name in dict.fromkeys((*QUANTITIES, *titles))},
    }
    if names:
        table = table_of(
            READINGS, every, columns, folded=True, most=MOST_CASES, optional=[*columns]
        )
        yield replace(table, of_two_axes=True).upright


def _mean(column: str, of: Watched) -> Number:
    """Of a bit mask all of its values."""
    if found := observed(of.row, column, of.way):
        masks = {one[column] for one in windows(of.row, of.way) if is_number(one.get(column))}
        texts = [reading_text(column, value) for value in sorted(masks)]
        is_mask = column.endswith("_mask")
        return Number(", ".join(texts)) if is_mask else mean_text(column, found)
    own_calls = (of.row.get("tables") or {}).get(column) if of.way == "eager" else None
    return Number(reading_text(column, own_calls) if is_number(own_calls) else "")
