"""The `tables` of a row: torch.profiler's kernels, and tables of other probes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..data.row_groups import Row

KERNELS, CALLS = "kernel_table", "profiled_call_count"
OTHERS = "(all others)"  # the probe's own entry for kernels that it does not list
Entry = Mapping[str, Any]


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
