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
from ..data.row_groups import Group, case_key, label, records
from ..data.run_meta import Meta, caption
from ..elements import Block, Figure, Panel, Series, Table, Text, note
from ..formatting import STATUS_WORDS, bytes_text, flops_text, number_text, time_text
from ..subjects._over_n import not_drawn

TITLE = "Cost of heads"
ORDER = 30
NEEDS = ("heads", "work_flops", "peak_bytes", "latency_ms")
MOST_FIGURES = 2


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    compared = comparable(records(frame))
    if not compared:
        yield note(
            "There is nothing to compare: no backend was measured with one head and with more on an"
            " otherwise equal problem."
        )
        return
    yield note(
        "Every ratio is to h = 1 of the same backend on the otherwise equal problem. Times are"
        " paired block by block if both were measured in the same blocks, else marked as unpaired."
        " Whether a time is the same is decided by an equivalence test with a margin of"
        f" {100 * MARGIN_RATIO:g} %: times that cannot be told apart are not necessarily equal."
    )
    leading = _leading(compared)
    for group, costs in leading:
        yield from (Text(text=f"{group.prefixed(answer(cost))}.") for cost in most_heads(costs))
    others = [pair for pair in compared if pair not in leading]
    drawn = [*leading, *others[: max(0, MOST_FIGURES - len(leading))]]
    for group, costs in drawn:
        yield _figure(group, costs, meta)
    if left := [pair[0] for pair in compared if pair not in drawn]:
        yield from not_drawn(left, "; the table has them all")
        by_length = sorted(compared, key=lambda pair: pair[0].problem["seq_len"])
        yield _table(by_length, folded=True)


def _leading(compared: list[tuple[Group, list[HeadCost]]]) -> list[tuple[Group, list[HeadCost]]]:
    """The first problem of every run: each may have its own heads, and its own question."""
    first: dict[str, tuple[Group, list[HeadCost]]] = {}
    for group, costs in compared:
        first.setdefault(group.problem["run"], (group, costs))
    return list(first.values())


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
        title=group.prefixed(headline(costs)),
        caption=caption(group.problem, meta) + _without_points(costs),
        description=(
            "Three panels over the number of heads h: time, peak bytes and FLOPs, each as a ratio"
            " to one head of the same backend, both axes logarithmic, one line per backend. The"
            " dotted line is 1: more heads for free. A cross at the upper edge of the time marks a"
            " failed case. The table below has every number."
        ),
        panels=panels,
        table=_table([(group, costs)]),
    )


def _without_points(costs: list[HeadCost]) -> str:
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
        # Failed cases have FLOPs too: they follow from the problem.
        failed = [cost for cost in mine if cost.row["status"] != "ok"] if what == "time" else []
        if len(known) > 1:
            x, y, low, high, cases = (tuple(column) for column in zip(*known, strict=True))
            series.append(
                Series(backend=backend, kind="measured", x=x, y=y, low=low, high=high, cases=cases)
            )
        if failed:
            x = tuple(cost.heads for cost in failed)
            keys, none = tuple(case_key(cost.row) for cost in failed), (None,) * len(failed)
            series.append(Series(backend=backend, kind="failed", x=x, y=none, cases=keys))
    return tuple(series)


def _point(cost: HeadCost, what: str) -> tuple[float | None, float | None, float | None]:
    if what != "time":
        return (cost.peak_bytes if what == "peak bytes" else cost.flops), None, None
    if cost.heads == 1:
        return (1.0 if cost.row.get("latency_ms") is not None else None), None, None
    if cost.time is None:
        return None, None, None
    return cost.time.value, cost.time.low, cost.time.high


def _table(compared: list[tuple[Group, list[HeadCost]]], *, folded: bool = False) -> Table:
    rows = [
        (
            group.label or label(group.problem, ["seq_len"]),
            cost.backend,
            str(cost.heads),
            time_text(cost.row.get("latency_ms")) or STATUS_WORDS[cost.row["status"]],
            _time_ratio(cost),
            found.answer if (found := same_time(cost)) else "",
            bytes_text(cost.row.get("peak_bytes")),
            number_text(cost.peak_bytes),
            flops_text(cost.row.get("work_flops")),
            number_text(cost.flops),
        )
        for group, costs in compared
        for cost in costs
    ]
    time, size = ("time", "time / h = 1", "same within 5 %"), ("peak bytes", "bytes / h = 1")
    return Table(
        title="Time, peak bytes and FLOPs against one head" + (", all problems" if folded else ""),
        columns=("problem", "backend", "h", *time, *size, "FLOPs", "FLOPs / h = 1"),
        rows=tuple(rows),
        folded=folded,
    )


def _time_ratio(cost: HeadCost) -> str:
    if cost.time is not None:
        return cost.time.text
    return "1" if cost.heads == 1 and cost.row.get("latency_ms") is not None else ""
