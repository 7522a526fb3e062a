"""What probes found in calls of their own: the kernels of a call, and tables of other probes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..data.row_groups import Row, distinguishing_axes, label, problem
from ..elements import Block, Table, note
from ..formatting import bytes_text, number_text, plural, share_text, time_text, whole_text

KERNELS, CALLS = "kernel_table", "profiled_call_count"
OTHERS = "(all others)"  # the probe's own entry for kernels that it does not list
Entry = Mapping[str, Any]

ACRONYMS = {word.lower(): word for word in ("SM", "GPU", "CPU", "DRAM", "HMMA", "NVLink", "PCIe")}


class Ending(NamedTuple):
    """How columns with this ending of their name are written."""

    unit: str
    text: Callable[[float], str] = number_text
    scale: float = 1


ENDINGS = {
    "_ratio": Ending(" %", scale=100),
    "_bytes": Ending("", bytes_text),
    "_mhz": Ending(" MHz"),
    "_ms": Ending("", time_text),
    "_s": Ending("", time_text, scale=1000),
    "_w": Ending(" W"),
    "_j": Ending(" J"),
    "_c": Ending(" °C"),
    "_count": Ending("", whole_text),
    "_mask": Ending("", lambda value: f"0x{int(value):x}"),
}


def column_title(name: str) -> str:
    """`SM clock` for sm_clock_mhz."""
    ending = next((ending for ending in ENDINGS if name.endswith(ending)), "")
    kept = name if ending in ("_count", "_mask") else name.removesuffix(ending)
    return " ".join(ACRONYMS.get(word, word) for word in kept.split("_"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One kernel and launch shape; numbers per call are None if the number of calls is unknown."""

    name: str
    launches_per_call: float | None
    time_per_call_ms: float | None
    time_share: float | None
    entry: Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTable:
    """The kernels of one case, longest first. `rest`: those beyond the first ones, summed up."""

    kernels: list[Kernel]
    rest: Kernel | None
    rest_count: int
    calls: float | None
    launches_per_call: float | None


def kernel_table(row: Row, most: int) -> KernelTable | None:
    """None if the row has no kernels."""
    entries = [one for one in table_entries(row, KERNELS) if _number(one, "time_ms") is not None]
    if not entries:
        return None
    calls = _number(row["tables"], CALLS)
    calls = calls if calls and calls > 0 else None
    total_ms = sum(_number(one, "time_ms") or 0 for one in entries)

    def kernel(name: str, some: Sequence[Entry]) -> Kernel:
        time_ms = sum(_number(one, "time_ms") or 0 for one in some)
        launches = sum(_number(one, "launch_count") or 0 for one in some)
        return Kernel(
            name=name,
            launches_per_call=launches / calls if calls else None,
            time_per_call_ms=time_ms / calls if calls else None,
            time_share=time_ms / total_ms if total_ms > 0 else None,
            entry=some[0] if len(some) == 1 else {},
        )

    entries.sort(key=lambda one: (one.get("name") == OTHERS, -(_number(one, "time_ms") or 0)))
    first = [one for one in entries[:most] if one.get("name") != OTHERS]
    rest = entries[len(first) :]
    return KernelTable(
        kernels=[kernel(str(one.get("name") or "unnamed"), [one]) for one in first],
        rest=kernel("all others", rest) if rest else None,
        rest_count=len(rest),
        calls=calls,
        launches_per_call=kernel("", entries).launches_per_call,
    )


def other_tables(row: Row) -> dict[str, list[Entry]]:
    """The tables of other probes, by name: lists of objects with at least one entry."""
    names = (name for name in row.get("tables") or {} if name != KERNELS)
    found = {name: table_entries(row, name) for name in names}
    return {name: entries for name, entries in found.items() if entries}


def table_entries(row: Row, name: str) -> list[Entry]:
    """The objects of a table; empty if it is null or not a list."""
    found = (row.get("tables") or {}).get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _number(of: Entry, name: str) -> float | None:
    value = of.get(name)
    return value if type(value) in (int, float) else None


MOST_KERNELS = 10
MOST_ENTRIES = 40
MOST_TABLES = 60
MOST_NAME = 80  # characters of a kernel's name; templates go on for pages
COLUMNS = ("kernel", "launches per call", "time per call", "share of time")
SHAPES = ("grid", "block", "thread_register_count", "block_shared_bytes", "occupancy_ratio")


def tables(rows: Sequence[Row]) -> Iterator[Block]:
    """One folded table per case and probe."""
    axes = distinguishing_axes(rows)
    found, has_kernels = [], False
    for row in rows:
        name = f"{row['backend']} at {label(problem(row), axes)}"
        if kernels := kernel_table(row, MOST_KERNELS):
            has_kernels = True
            found.append(_kernels(kernels, name))
        found += [_entries(table, name, some) for table, some in other_tables(row).items()]
    if has_kernels:
        yield note(
            "Kernels were recorded by torch.profiler in calls of their own. Profiling slows down"
            " launches, so compare shares, not times. On a CPU the entries are torch's operators,"
            " each with the time spent in itself."
        )
    yield from found[:MOST_TABLES]
    if len(found) > MOST_TABLES:
        yield note(f"{plural(len(found) - MOST_TABLES, 'more table')} in rows.jsonl, under tables.")


def _kernels(found: KernelTable, name: str) -> Table:
    title = f"Kernels of {name}"
    if found.launches_per_call is not None:
        title += f": {whole_text(found.launches_per_call)} launches per call"
    if found.kernels and (share := found.kernels[0].time_share):
        title += f"; {share_text(share)} of the time in {_short(found.kernels[0].name)}"
    shapes = [
        shape for shape in SHAPES if any(one.entry.get(shape) is not None for one in found.kernels)
    ]
    lines = [_line(one, shapes) for one in found.kernels]
    if found.rest:
        rest = _line(found.rest, shapes)
        lines.append((f"{plural(found.rest_count, 'other entry', 'other entries')}", *rest[1:]))
    return Table(
        title=title,
        columns=(*COLUMNS, *map(column_title, shapes)),
        rows=tuple(lines),
        folded=True,
    )


def _line(one: Kernel, shapes: Sequence[str]) -> tuple[str, ...]:
    return (
        _short(one.name),
        whole_text(one.launches_per_call),
        time_text(one.time_per_call_ms),
        "" if one.time_share is None else share_text(one.time_share),
        *(_cell(shape, one.entry.get(shape)) for shape in shapes),
    )


def _entries(table: str, case: str, entries: Sequence[Entry]) -> Table:
    """A table that reports do not know: its keys are the columns."""
    keys = list(dict.fromkeys(key for entry in entries for key in entry))
    left = len(entries) - MOST_ENTRIES
    more = f"; {plural(left, 'more entry', 'more entries')} in rows.jsonl" if left > 0 else ""
    title = column_title(table)
    return Table(
        title=f"{title[:1].upper()}{title[1:]} of {case}{more}",
        columns=tuple(column_title(str(key)) for key in keys),
        rows=tuple(
            tuple(_cell(str(key), entry.get(key)) for key in keys)
            for entry in entries[:MOST_ENTRIES]
        ),
        folded=True,
    )


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return " × ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return _short(str(value))
    if name.endswith("_bytes"):
        return bytes_text(value)
    if name.endswith("_ms"):
        return time_text(value)
    if name.endswith("_ratio"):
        return share_text(value)
    return whole_text(value)


def _short(name: str) -> str:
    return name if len(name) <= MOST_NAME else f"{name[: MOST_NAME - 1]}…"
