"""What figures over N share: the axis, the series of rows, small multiples of figures with few
points, and a note on what is not drawn.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..data.row_groups import Group, Row, case_key
from ..elements import Block, Figure, Panel, Series, Table, note
from ..formatting import plural
from ..quantity import Cell, Unit

N_LABEL = "sequence length N (1k = 1024)"
FEW_POINTS = 3  # over N: figures with as few are drawn as small multiples,
FEWEST_MULTIPLES = 3  # if there are so many of them


def panel(y_label: str, unit: Unit, series: Sequence[Series], **more: Any) -> Panel:
    return Panel(x_label=N_LABEL, y_label=y_label, unit=unit, series=tuple(series), **more)


def latency_series(backend: str, rows: Sequence[Row], *, per_token: bool = False) -> Series:
    """Latencies with their intervals; `per_token` divides them by N."""
    y, low, high = (
        tuple(
            None if row[field] is None else row[field] / (row["seq_len"] if per_token else 1)
            for row in rows
        )
        for field in ("latency_ms", "latency_low_ms", "latency_high_ms")
    )
    return Series(
        backend=backend,
        kind="measured",
        x=tuple(row["seq_len"] for row in rows),
        y=y,
        low=low,
        high=high,
        cases=tuple(map(case_key, rows)),
    )


def multiples(drawn: Sequence[tuple[Group, Figure]], title: str) -> Iterator[Figure]:
    """The figures of these problems; those of few points as one, with a panel for each problem.

    `title`: the finding of all together.
    """
    figures = [figure for _, figure in drawn]
    few = all(len(one.panels) == 1 and _points(one) <= FEW_POINTS for one in figures)
    if len(figures) < FEWEST_MULTIPLES or not few:
        yield from figures
        return
    first, *others = (figure.caption.split(" · ") for figure in figures)
    common = [part for part in first if all(part in other for other in others)]
    yield replace(
        figures[0],
        title=title,
        caption=" · ".join(common),
        description=f"A panel for each of {len(figures)} problems. {figures[0].description}",
        panels=tuple(replace(one.panels[0], title=group.label) for group, one in drawn),
        table=_joined([(group.label, figure.table) for group, figure in drawn]),
    )


def _points(figure: Figure) -> int:
    return len({x for panel in figure.panels for series in panel.series for x in series.x})


def _joined(tables: Sequence[tuple[str, Table]]) -> Table:
    """One table, with the problem in its first column; columns are matched by their titles."""
    columns = list(dict.fromkeys(name for _, table in tables for name in table.columns))
    rows: list[tuple[Cell, ...]] = []
    strong: set[tuple[int, int]] = set()
    cases: dict[tuple[int, int], str] = {}
    for label, table in tables:
        places = [columns.index(name) + 1 for name in table.columns]
        top = len(rows)
        strong |= {(top + row, places[column]) for row, column in table.strong}
        cases |= {(top + row, places[column]): key for (row, column), key in table.cases.items()}
        for row in table.rows:
            cells = dict(zip(table.columns, row, strict=True))
            rows.append((label, *(cells.get(name, "") for name in columns)))
    return Table(
        title=tables[0][1].title,
        columns=("problem", *columns),
        rows=tuple(rows),
        strong=frozenset(strong),
        cases=cases,
    )


def not_drawn(left: Sequence[Group], table: str = "") -> Iterator[Block]:
    """A note on further problems; `table`: where their numbers are, else they are named."""
    if left:
        names = f": {'; '.join(group.label for group in left)}"
        yield note(f"{plural(len(left), 'more problem')} not drawn{table or names}.")
