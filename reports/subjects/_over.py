"""What pictures and tables over N or another size share: a panel per problem, its lines."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import isfinite
from typing import Any

from ...harness.stats.intervals import Interval
from ..data.exactness import is_exact
from ..data.processor_time import disturbed, time_of
from ..data.row_groups import (
    Group,
    Row,
    axis_title,
    backends,
    family,
    label,
    unusual,
    value_text,
)
from ..data.run_meta import OUT_OF_MEMORY, Meta, caption
from ..elements import Figure, Marked, Panel, Scale, Series, Table, table_of
from ..formatting import STATUS_WORDS, capital, length_text, list_text
from ..judging.ratio import Ratio
from ..quantity import Cell, Quantity, Unit

N_LABEL = "sequence length N (1k = 1024)"
SPARSE = "sparse_"  # backends whose names begin with this compute a sparse mask only
MOST_PANELS = 3
LATENCY = "latency_{}ms"


def challenges(row: Row) -> bool:
    """A backend that was measured to be compared with dense exact attention."""
    return not is_exact(row) or family(row["backend"]).startswith(SPARSE)


def n_text(n: int) -> str:
    """`N = 2 848`."""
    return f"N\u00a0=\u00a0{length_text(n)}"


def joined(findings: Sequence[tuple[Group, str]]) -> str:
    """One sentence of several problems; with a capital, unless a backend's name opens it."""
    text = "; ".join(
        f"for {group.label}: {finding}" if group.label else finding for group, finding in findings
    )
    starts_with_name = text.partition(" ")[0] in backends(findings[0][0].rows)
    return text if starts_with_name else capital(text)


# ---- pictures ------------------------------------------------------------------------------------


def panel(
    group: Group,
    axis: str = "seq_len",
    column: str = LATENCY,
    *,
    x_label: str = "",
    y_label: str = "latency",
    unit: Unit = "ms",
    y_scale: Scale = "log",
    line: tuple[float, str] | None = None,
) -> Panel:
    """A value of every backend over a size, and crosses for cases that failed.

    `column`: of the value; with `low_` and `high_` at the braces those of its bounds. Rows may be
    findings of a study.
    """
    series = []
    for name in backends(group.rows):
        rows = [row for row in group.rows if row["backend"] == name]
        if any(row.get(column.format("")) is not None for row in rows):
            failed = [row for row in rows if row.get("status", "ok") != "ok"]
            series.append(_series(rows, axis, column))
            series += [_series(failed, axis, "")] if failed else []
    return Panel(
        title=group.label,
        x_label=x_label or (N_LABEL if axis == "seq_len" else axis_title(axis)),
        y_label=y_label,
        unit=unit,
        y_scale=y_scale,
        series=tuple(series),
        line=line,
    )


def ends(row: Row, column: str) -> tuple[Any, Any, Any]:
    """A value and its bounds; `column` has braces where the names of its bounds have `low_`."""
    value, low, high = (row.get(column.format(part)) for part in ("", "low_", "high_"))
    return value, low, high


def with_ends(row: Row, column: str, found: Interval | Quantity | Ratio) -> Row:
    """A row with a value and those of its bounds that are known, in columns as `panel` takes."""
    every = {"": found.value, "low_": found.low, "high_": found.high}
    known = {part: end for part, end in every.items() if end is not None and isfinite(end)}
    return row | {column.format(part): known.get(part) for part in every}


def _series(rows: Iterable[Row], axis: str, column: str) -> Series:
    """In order of the size; of failed cases without a column."""
    mine = sorted(rows, key=lambda row: row[axis])
    is_oom = all(row.get("status") in OUT_OF_MEMORY for row in mine)
    y, low, high = zip(*(ends(row, column) for row in mine), strict=True)
    return Series(
        backend=mine[0]["backend"],
        kind="measured" if column else "failed",
        x=tuple(row[axis] for row in mine),
        y=y,
        low=low if "{}" in column else (),
        high=high if "{}" in column else (),
        busy=tuple(disturbed(row) for row in mine) if column == LATENCY else (),
        notes=tuple(time_of(row).note for row in mine) if column == LATENCY else (),
        why="out of memory" if is_oom and not column else "",
    )


def common_caption(shown: Sequence[Group], meta: Meta) -> str:
    """What is equal in several problems."""
    same = {
        axis: value
        for axis, value in shown[0].problem.items()
        if all(group.problem.get(axis) == value for group in shown)
    }
    return caption(same, meta) if "run" in same else label(unusual(same))


def latencies(
    shown: Sequence[Group],
    title: str,
    meta: Meta,
    *,
    axis: str = "seq_len",
    table: Table | None = None,
) -> Figure:
    """A panel for each problem. `table`: if it is not that of the latencies."""
    return Figure(
        title=title,
        caption=common_caption(shown, meta),
        panels=tuple(panel(group, axis) for group in shown),
        table=table
        or by_backend(
            f"Latency over {axis_title(axis)}, with 95 % intervals ({reach(shown)})",
            *lines_over(shown, axis),
            lambda row, _: _latency(row),
        ),
    )


def reach(shown: Sequence[Group]) -> str:
    """Over what the intervals of latencies reach: `this run`."""
    rows = (row for group in shown for row in group.rows)
    return list_text([*dict.fromkeys(of for row in rows if (of := row.get("latency_reach")))])


def _latency(row: Row) -> Cell:
    if row["status"] != "ok":
        return STATUS_WORDS[row["status"]]
    return time_of(row, bounds=True)


# ---- tables --------------------------------------------------------------------------------------

Line = tuple[tuple[Cell, ...], Sequence[Row]]  # the first cells, and the rows that the others show


def lines_over(groups: Sequence[Group], axis: str) -> tuple[tuple[str, ...], list[Line]]:
    """The titles of the first cells, and a line for each problem and value of the axis."""
    from_place = 0 if len(groups) > 1 else 1  # of one problem the lines do not name it
    lines: list[Line] = [
        ((group.label or "all", value_text(axis, value))[from_place:], rows)
        for group in groups
        for value, rows in group.by_value(axis).items()
    ]
    return ("problem", axis_title(axis))[from_place:], lines


def by_backend(
    title: str,
    heads: Sequence[str],
    lines: Sequence[Line],
    cell: Callable[[Row, Sequence[Row]], Cell | Marked],
) -> Table:
    """A column per backend. `cell`: of its row, and of all rows of the line."""

    def first(place: int, line: Line) -> Cell:
        return line[0][place]

    def of(name: str, line: Line) -> Cell | Marked:
        return next((cell(row, line[1]) for row in line[1] if row["backend"] == name), "")

    names = backends(row for _, rows in lines for row in rows)
    columns = {head: partial(first, place) for place, head in enumerate(heads)}
    return table_of(title, lines, columns | {name: partial(of, name) for name in names})
