"""What probes read: windows of the counters, tables of their own, the kernels of a call, and how
columns are written whose names tell their unit.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import isfinite
from typing import Any, TypeGuard

from ...harness.stats.intervals import Interval, mean_interval
from ..data.row_groups import Row, by, distinguishing_axes, label, problem
from ..elements import Block, Table, note, table_of
from ..formatting import bytes_text, capital, number_text, plural, share_text, time_text, whole_text
from ..quantity import Cell, Number, joules_text

Window = Mapping[str, Any]
Entry = Mapping[str, Any]
PER = {"energy_j": "calls", "calls": "window_s"}
"""What some quantities of a window are divided by."""
ACRONYMS = {word.lower(): word for word in ("SM", "GPU", "CPU", "DRAM", "HMMA", "NVLink", "PCIe")}
ENDINGS: dict[str, Callable[[float], str]] = {
    "_cpu_ratio": lambda share: share_text(share, "for torch's threads alone"),
    "_ratio": share_text,
    "_bytes": bytes_text,
    "_mhz": lambda clock: f"{number_text(clock)} MHz",
    "_ms": time_text,
    "_s": lambda time_s: time_text(1000 * time_s),
    "_w": lambda power: f"{number_text(power)} W",
    "_j": joules_text,
    "_c": lambda temperature: f"{number_text(temperature)} °C",
    "_count": whole_text,
    "_mask": lambda mask: f"0x{int(mask):x}",
}
"""How columns with this ending of their name are written."""
KERNELS, CALLS = "kernel_table", "profiled_call_count"
OTHERS = "(all others)"  # the probe's own entry for kernels that it does not list
MOST_KERNELS = 10  # of a case; the others are one line
MOST_LINES = 400
MOST_NAME = 80  # characters of a cell; a kernel's name with templates goes on for pages
COLUMNS = {
    "name": "kernel",
    "launches": "launches per call",
    "call_ms": "time per call",
    "time_ratio": "share of time",
    "grid": "grid",
    "block": "block",
    "thread_register_count": "registers per thread",
    "block_shared_bytes": "shared memory per block",
    "waves": "waves",
    "occupancy_ratio": "occupancy allowed",
}
"""Of a kernel: their titles."""
BRIEF = ("name", "time_ratio", "thread_register_count", "waves", "occupancy_ratio")
PROFILED = (
    "torch.profiler recorded the kernels in calls of their own, which it slows down: compare"
    " shares, not times. The launch allows this occupancy; it was not measured. On a CPU the"
    " entries are torch's operators, each with the time spent in itself."
)


def is_number(value: Any) -> TypeGuard[float]:
    return type(value) in (int, float)


def _ending(name: str) -> str:
    return next((ending for ending in ENDINGS if name.endswith(ending)), "")


def column_title(name: str) -> str:
    """`SM clock` for sm_clock_mhz."""
    ending = _ending(name)
    cut = {"_cpu_ratio": "_ratio", "_count": "", "_mask": ""}.get(ending, ending)
    return " ".join(ACRONYMS.get(word, word) for word in name.removesuffix(cut).split("_"))


def reading_text(name: str, value: float) -> str:
    """A value of this column with its unit, which the name tells: `1755 MHz`, `12.5 %`."""
    return ENDINGS.get(_ending(name), whole_text)(value)


def mean_text(name: str, found: Interval) -> Number:
    """A mean with half the width of its interval, if it has one: `81.0 % ± 2.00 %`."""
    known = isfinite(found.low)
    half = f" ± {reading_text(name, (found.high - found.low) / 2)}" if known else ""
    return Number(reading_text(name, found.value) + half)


# ---- windows -------------------------------------------------------------------------------------


def windows(row: Row, way: str = "eager") -> list[Window]:
    return [window for window in row.get("windows") or [] if window["way"] == way]


def launch_modes(rows: Iterable[Row]) -> list[str]:
    """`eager`, `graph`: the ways in which the windows of these rows launched their calls."""
    return list(dict.fromkeys(window["way"] for row in rows for window in row.get("windows") or []))


def observed(row: Row, column: str, way: str = "eager") -> Interval | None:
    """A quantity of one case; None if no window has it."""
    known = [window for window in windows(row, way) if is_number(window.get(column))]
    per = PER.get(column)
    values = [window[column] / (window[per] if per else 1) for window in known]
    return mean_interval(values, "window") if values else None


def missing(rows: Iterable[Row]) -> dict[str, list[str]]:
    """Why columns are missing: reason -> their names, each once."""
    every = (pair for row in rows for pair in (row.get("missing") or {}).items())
    by_reason = by(dict.fromkeys(every), lambda pair: pair[1])
    return {reason: [name for name, _ in pairs] for reason, pairs in by_reason.items()}


# ---- tables of probes ----------------------------------------------------------------------------


def tables(rows: Sequence[Row]) -> Iterator[Block]:
    """A folded table of all cases for each table of a probe, the kernels first."""
    if lines := [line for row in rows for line in _kernels(row)]:
        yield note(PROFILED)
        yield replace(_of_cases("Kernels of a call", lines, COLUMNS), folded=True)
    for name in dict.fromkeys(name for row in rows for name in row.get("tables") or {}):
        lines = [{**one, "row": row} for row in rows for one in _entries(row, name)]
        keys = dict.fromkeys(key for line in lines for key in line if key != "row")
        if lines and name != KERNELS:
            titles = {key: column_title(str(key)) for key in keys}
            yield replace(_of_cases(capital(column_title(name)), lines, titles), folded=True)


def longest_kernels(rows: Sequence[Row]) -> Table | None:
    """The longest kernel of each case: its share of the time, and how it fills the GPU."""
    lines = [line for row in rows for line in [*_kernels(row)][:1]]
    brief = {name: COLUMNS[name] for name in BRIEF}
    return _of_cases("The longest kernel of a call", lines, brief) if lines else None


def _of_cases(title: str, lines: Sequence[Entry], titles: Mapping[str, str]) -> Table:
    """Entries, each with its `row`. `titles`: of their values; the name where two are equal."""
    axes = distinguishing_axes([line["row"] for line in lines])
    at = {id(line): label(problem(line["row"]), axes) for line in lines}
    several = len({*at.values()}) > 1
    twice = {one for one, count in Counter(titles.values()).items() if count > 1}
    columns: dict[str, Callable[[Entry], Cell]] = {
        "problem": lambda line: at[id(line)] if several else "",
        "backend": lambda line: line["row"]["backend"],
        **{name if one in twice else one: partial(_cell, name) for name, one in titles.items()},
    }
    return table_of(title, lines, columns, optional=[*columns], most=MOST_LINES)


def _cell(name: str, of: Entry) -> Cell:
    """A value of which only its type is known."""
    value = of.get(name)
    if is_number(value):
        return Number(reading_text(name, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = " × ".join(map(str, value)) if isinstance(value, list) else str(value or "")
    return text if len(text) <= MOST_NAME else f"{text[: MOST_NAME - 1]}…"


def _entries(row: Row, table: str) -> list[Entry]:
    """The objects of a table; empty if it is null or not a list."""
    found = (row.get("tables") or {}).get(table)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _kernels(row: Row) -> Iterator[Entry]:
    """The kernels of one case, longest first, then the sum of all others. What is per call or a
    share is missing if the number of calls, or the time, is unknown.
    """
    entries = [one for one in _entries(row, KERNELS) if is_number(one.get("time_ms"))]
    entries.sort(key=lambda one: (one.get("name") == OTHERS, -one["time_ms"]))
    shown = [one for one in entries[:MOST_KERNELS] if one.get("name") != OTHERS]
    if rest := entries[len(shown) :]:
        sums = {name: _sum(rest, name) for name in ("launch_count", "time_ms")}
        shown.append({"name": plural(len(rest), "other entry", "other entries"), **sums})
    calls = _sum([row.get("tables") or {}], CALLS)
    total_ms = _sum(entries, "time_ms")
    for one in shown:
        per_call = {"launches": _sum([one], "launch_count"), "call_ms": one["time_ms"]}
        made = {name: value / calls for name, value in per_call.items()} if calls > 0 else {}
        share = {"time_ratio": one["time_ms"] / total_ms} if total_ms > 0 else {}
        yield {**one, "row": row, **made, **share}


def _sum(entries: Sequence[Entry], name: str) -> float:
    return sum(value for one in entries if is_number(value := one.get(name)))
