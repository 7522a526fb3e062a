"""What pictures and tables over N or another size share: a panel per problem, its lines."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from ..data.exactness import is_exact
from ..data.processor_time import disturbed, time_of
from ..data.row_groups import (
    Group,
    Row,
    axis_title,
    backends,
    case_key,
    family,
    label,
    unusual,
    value_text,
)
from ..data.run_meta import Meta, caption
from ..elements import Block, Figure, Marked, Panel, Scale, Series, Table, note, table_of
from ..formatting import STATUS_WORDS, capital, length_text, plural
from ..growth_fit import slope
from ..quantity import Cell, Unit

N_LABEL = "sequence length N (1k = 1024)"
SPARSE = "sparse_"  # backends whose names begin with this compute a sparse mask only
MOST_PANELS = 3
LATENCY = "latency_{}ms"
OUT_OF_MEMORY = ("oom", "predicted_oom")
LAST = 3  # lengths of which the growth stands at a line's end
MOST_SPREAD = 0.5  # of the bounds of its exponent
LEAST_POWER = 0.1


def is_sparse(row: Row) -> bool:
    return family(row["backend"]).startswith(SPARSE)


def challenges(row: Row) -> bool:
    """A backend that was measured to be compared with dense exact attention."""
    return not is_exact(row) or is_sparse(row)


def n_text(n: int) -> str:
    """`N = 2 848`."""
    return f"N\u00a0=\u00a0{length_text(n)}"


def joined(findings: Sequence[tuple[Group, str]]) -> str:
    """One sentence of several problems; with a capital, unless a backend's name opens it."""
    group = findings[0][0]
    parts = [
        f"for {other.label}: {finding}" if other.label else finding for other, finding in findings
    ]
    text = "; ".join(parts)
    starts_with_name = text.partition(" ")[0] in backends(group.rows)
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


def _series(rows: Iterable[Row], axis: str, column: str) -> Series:
    """In order of the size; of failed cases without a column."""
    mine = sorted(rows, key=lambda row: row[axis])
    y, low, high = (
        tuple(row.get(column.format(part)) for row in mine) for part in ("", "low_", "high_")
    )
    return Series(
        backend=mine[0]["backend"],
        kind="measured" if column else "failed",
        x=tuple(row[axis] for row in mine),
        y=y,
        low=low if "{}" in column else (),
        high=high if "{}" in column else (),
        cases=tuple(case_key(row) for row in mine if "case" in row),
        busy=tuple(disturbed(row) for row in mine) if column == LATENCY else (),
        why="" if column or not all(map(_is_oom, mine)) else "out of memory",
        ending=_growth(mine) if column == LATENCY and axis == "seq_len" else "",
    )


def _is_oom(row: Row) -> bool:
    return row.get("status") in OUT_OF_MEMORY


def _growth(rows: Sequence[Row]) -> str:
    """`grows as N^2.0`, between the longest two doublings; "" if that is not known well."""
    timed = [row for row in rows if row.get("latency_ms") is not None][-LAST:]
    if len(timed) < LAST or disturbed(*timed):
        return ""
    found = slope(timed[0], timed[-1], "seq_len")
    if found is None or not found.high - found.low <= MOST_SPREAD or found.value < LEAST_POWER:
        return ""
    return f"grows as N^{found.value:.1f}"


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
            f"Latency over {axis_title(axis)}, with 95 % intervals",
            *lines_over(shown, axis),
            lambda row, _: _latency(row),
            folded=True,
        ),
    )


def _latency(row: Row) -> Cell:
    if row["status"] != "ok":
        return STATUS_WORDS[row["status"]]
    return time_of(row, bounds=True)


def not_drawn(left: Sequence[Group], table: str = "") -> Iterator[Block]:
    """A note on further problems; `table`: where their numbers are, else they are named."""
    if left:
        names = f": {'; '.join(group.label for group in left)}"
        yield note(f"{plural(len(left), 'more problem')} not drawn{table or names}.")


# ---- tables --------------------------------------------------------------------------------------

Line = tuple[tuple[Cell, ...], Sequence[Row]]  # the first cells, and the rows that the others show


def lines_over(groups: Sequence[Group], axis: str) -> tuple[tuple[str, ...], list[Line]]:
    """The titles of the first cells, and a line for each problem and value of the axis."""
    several = len(groups) > 1
    lines: list[Line] = [
        (
            (*([group.label or "all"] if several else []), value_text(axis, value)),
            rows,
        )
        for group in groups
        for value, rows in group.by_value(axis).items()
    ]
    return (*(["problem"] if several else []), axis_title(axis)), lines


def by_backend(
    title: str,
    heads: Sequence[str],
    lines: Sequence[Line],
    cell: Callable[[Row, Sequence[Row]], Cell | Marked],
    *,
    folded: bool = False,
) -> Table:
    """A column per backend. `cell`: of its row, and of all rows of the line."""

    def first(place: int, line: Line) -> Cell:
        return line[0][place]

    def of(name: str, line: Line) -> Cell | Marked:
        return next((cell(row, line[1]) for row in line[1] if row["backend"] == name), "")

    names = backends(row for _, rows in lines for row in rows)
    columns = {head: partial(first, place) for place, head in enumerate(heads)}
    return table_of(
        title, lines, columns | {name: partial(of, name) for name in names}, folded=folded
    )
