"""A recurrent layer of the same width beside attention: latency over N for each d, where one
overtakes the other, what its steps cost.
"""

from collections.abc import Iterator, Sequence

import pandas as pd

from ..analysis.crossover import Overtaking
from ..analysis.recurrence import Steps, even_by_flops, finding, overtakings, recurring, steps
from ..analysis.rows import case_key
from ..data.run_meta import Meta, caption
from ..data.row_groups import Group, axis_text, backends, records
from ..elements import Block, Figure, Panel, Series, Table, Text
from ..formatting import count_text, plural, rate_text, time_text

TITLE = "Recurrence"
ORDER = 46
NEEDS = ("exactness", "latency_ms")
MOST_FIGURES = 6


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    found = recurring(records(frame))
    if not found:
        yield Text(text="No recurrent layer was timed.", kind="note")
        return
    yield Text(
        text=(
            "A recurrent layer does O(N d²) work in N steps, one after the other; attention O(N² d)"
            " at once. By FLOPs alone attention is the cheaper one while N is below about d; what a"
            " step costs beyond its FLOPs moves that."
        ),
        kind="note",
    )
    over_n = [group for group in found if len({row["seq_len"] for row in group.rows}) > 1]
    for group in over_n[:MOST_FIGURES]:
        yield _figure(group, meta)
    if left := over_n[MOST_FIGURES:]:
        yield Text(
            text=f"{plural(len(left), 'more problem')} not drawn; the tables have them.",
            kind="note",
        )
    if crossings := [(group, one) for group in found for one in overtakings(group)]:
        yield _crossings(crossings)
    if left or len(over_n) < len(found):
        yield _steps([(group, one) for group in found for one in steps(group)])


def _figure(group: Group, meta: Meta) -> Figure:
    timed = [
        row
        for row in group.rows
        if row["latency_ms"] is not None and row["exactness"] != "approximate"
    ]
    names = backends(timed)
    by_name = {
        name: sorted(
            (row for row in timed if row["backend"] == name), key=lambda row: row["seq_len"]
        )
        for name in names
    }

    def panel(y_label: str, per_token: bool) -> Panel:
        series = []
        for name, rows in by_name.items():
            share = [row["seq_len"] if per_token else 1 for row in rows]
            y, low, high = (
                tuple(
                    None if row[field] is None else row[field] / part
                    for row, part in zip(rows, share, strict=True)
                )
                for field in ("latency_ms", "latency_low_ms", "latency_high_ms")
            )
            keys = tuple(map(case_key, rows))
            xs = tuple(row["seq_len"] for row in rows)
            series.append(
                Series(backend=name, kind="measured", x=xs, y=y, low=low, high=high, cases=keys)
            )
        return Panel(
            x_label="sequence length N (1k = 1024)",
            y_label=y_label,
            unit="ms",
            series=tuple(series),
        )

    return Figure(
        title=group.said(finding(group)),
        caption=caption(group.problem, meta),
        description=(
            "Two panels over the sequence length N, all axes logarithmic, one line per backend:"
            " latency of a call, and latency over N, which is the time of a step of the recurrent"
            " layer. Bars are 95 % intervals. The tables below have the numbers."
        ),
        panels=(panel("latency", per_token=False), panel("latency over N", per_token=True)),
        table=_steps([(group, one) for one in steps(group)]),
        same_y=False,
    )


def _crossings(found: Sequence[tuple[Group, Overtaking]]) -> Table:
    rows = [
        (
            group.label or "all",
            one.backend,
            one.against,
            one.text,
            "" if (even := even_by_flops(group)) is None else f"N = {count_text(round(even))}",
        )
        for group, one in found
    ]
    columns = ("problem", "recurrent", "than", "faster", "does fewer FLOPs from")
    return Table(
        title="From which N on a recurrent layer is faster than attention, by more than noise",
        columns=columns,
        rows=tuple(rows),
    )


def _steps(found: Sequence[tuple[Group, Steps]]) -> Table:
    rows, cases = [], {}
    for place, (group, one) in enumerate(found):
        beside = one.attention
        rate = None if beside is None else beside.get("achieved_flops_per_s")
        cases[place, 2] = case_key(one.row)
        rows.append(
            (
                group.label or "all",
                axis_text("seq_len", one.row["seq_len"]),
                one.row["backend"],
                time_text(one.step_ms),
                rate_text(one.flops_per_s),
                (
                    ""
                    if beside is None
                    else (
                        f"{beside['backend']},"
                        f" {time_text(beside['latency_ms'] / one.row['seq_len'])}"
                    )
                ),
                rate_text(rate),
            )
        )
    columns = (
        "problem",
        "N",
        "recurrent",
        "time of a step",
        "does",
        "fastest attention, per token",
        "does",
    )
    return Table(
        title="What a step costs, and how fast the work is done",
        columns=columns,
        rows=tuple(rows),
        cases=cases,
    )
