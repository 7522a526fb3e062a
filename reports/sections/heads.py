"""What h heads cost against one: time, peak bytes and FLOPs as ratios, per backend and problem."""

from collections.abc import Iterator
from typing import Literal

import pandas as pd

from ..analysis.heads import (
    MARGIN_RATIO,
    HeadCost,
    answer,
    comparable,
    headline,
    most_heads,
    same_time,
)
from ..analysis.rows import case_key
from ..data.run_meta import Meta, caption
from ..data.row_groups import Group, label, records, unusual
from ..elements import Block, Figure, Panel, Series, Table, Text
from ..formatting import STATUS_WORDS, bytes_text, flops_text, number_text, plural, time_text

TITLE = "Cost of heads"
ORDER = 30
NEEDS = ("heads", "work_flops", "peak_bytes", "latency_ms")
MOST_FIGURES = 2


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    compared = comparable(records(frame))
    if not compared:
        yield Text(
            text=(
                "There is nothing to compare: no backend was measured with one head and with more"
                " on an otherwise equal problem."
            ),
            kind="note",
        )
        return
    yield Text(
        text=(
            "Every ratio is against h = 1 of the same backend on the otherwise equal problem."
            " Times are paired block by block where both were measured in the same blocks, else"
            " marked as unpaired. Whether a time is the same is decided by an equivalence test"
            f" with a margin of {100 * MARGIN_RATIO:g} %: two times that are not told apart are not"
            " yet equal."
        ),
        kind="note",
    )
    group, costs = compared[0]
    yield from (Text(text=f"{group.said(answer(cost))}.") for cost in most_heads(costs))
    for group, costs in compared[:MOST_FIGURES]:
        yield _figure(group, costs, meta)
    if left := compared[MOST_FIGURES:]:
        yield Text(
            text=f"{plural(len(left), 'further problem')} not drawn; the table has them all.",
            kind="note",
        )
        yield _table(compared, folded=True)


def _figure(group: Group, costs: list[HeadCost], meta: Meta) -> Figure:
    panels = tuple(
        Panel(
            x_label="heads h",
            y_label=f"{what}, ratio to h = 1",
            unit="ratio",
            series=_series(costs, what),
            line=(1, ""),
        )
        for what in ("time", "peak bytes", "FLOPs")
    )
    return Figure(
        title=group.said(headline(costs)),
        caption=caption(group.problem, meta) + _absent(costs),
        description=(
            "Three panels over the number of heads h: time, peak bytes and FLOPs, each as a ratio"
            " to one head of the same backend, both axes logarithmic, one line per backend. The"
            " dotted line is 1: more heads for free. A cross at the upper edge of the time marks a"
            " case that did not run. The table below has every number."
        ),
        panels=panels,
        table=_table([(group, costs)]),
    )


def _absent(costs: list[HeadCost]) -> str:
    left = sorted({cost.backend for cost in costs} - {cost.backend for cost in most_heads(costs)})
    return f". Without a point: {', '.join(left)}" if left else ""


def _series(
    costs: list[HeadCost], what: Literal["time", "peak bytes", "FLOPs"]
) -> tuple[Series, ...]:
    series = []
    for backend in [cost.backend for cost in most_heads(costs)]:
        mine = [cost for cost in costs if cost.backend == backend]
        points = [(cost.heads, *_point(cost, what), case_key(cost.row)) for cost in mine]
        known = [point for point in points if point[1] is not None and point[1] == point[1]]
        # What did not run has FLOPs all the same: they follow from the problem.
        failed = [cost for cost in mine if cost.row["status"] != "ok"] if what == "time" else []
        if len(known) > 1:
            x, y, low, high, cases = (tuple(column) for column in zip(*known, strict=True))
            series.append(
                Series(backend=backend, kind="measured", x=x, y=y, low=low, high=high, cases=cases)
            )
        if failed:
            x, keys = (
                tuple(cost.heads for cost in failed),
                tuple(case_key(cost.row) for cost in failed),
            )
            series.append(
                Series(backend=backend, kind="failed", x=x, y=(None,) * len(failed), cases=keys)
            )
    return tuple(series)


def _point(cost: HeadCost, what: str) -> tuple[float | None, float | None, float | None]:
    if what != "time":
        return (cost.peak_bytes if what == "peak bytes" else cost.flops), None, None
    if cost.heads == 1:
        return (1.0 if cost.row.get("latency_ms") is not None else None), None, None
    return (
        (cost.time.value, cost.time.low, cost.time.high)
        if cost.time is not None
        else (None, None, None)
    )


def _table(compared: list[tuple[Group, list[HeadCost]]], *, folded: bool = False) -> Table:
    rows = [
        (
            group.label
            or label(
                {axis: value for axis, value in unusual(group.problem).items() if axis == "seq_len"}
            ),
            cost.backend,
            str(cost.heads),
            time_text(cost.row.get("latency_ms")) or STATUS_WORDS[cost.row["status"]],
            (
                "1"
                if cost.heads == 1 and cost.row.get("latency_ms") is not None
                else cost.time.text
                if cost.time is not None
                else ""
            ),
            same_time(cost) or "",
            bytes_text(cost.row.get("peak_bytes")),
            number_text(cost.peak_bytes),
            flops_text(cost.row.get("work_flops")),
            number_text(cost.flops),
        )
        for group, costs in compared
        for cost in costs
    ]
    columns = (
        "problem",
        "backend",
        "h",
        "time",
        "time / h = 1",
        "same within 5 %",
        "peak bytes",
        "bytes / h = 1",
        "FLOPs",
        "FLOPs / h = 1",
    )
    return Table(
        title=(
            "Time, peak bytes and FLOPs against one head, all problems"
            if folded
            else "Time, peak bytes and FLOPs against one head"
        ),
        columns=columns,
        rows=tuple(rows),
        folded=folded,
    )
