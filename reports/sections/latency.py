"""Latency over N, one figure per problem, with intervals; what did not run is marked at the upper
edge.
"""

from collections.abc import Iterator

import pandas as pd

from ..analysis import speed, trust
from ..analysis.missing_points import absent
from ..analysis.rows import case_key
from ..data.run_meta import Meta, caption
from ..data.row_groups import Group, Row, backends, groups, records
from ..elements import Block, Figure, Panel, Series, Table, Text
from ..formatting import STATUS_WORDS, count_text, number_text, plural, time_text

TITLE = "Latency"
ORDER = 40
NEEDS = ("latency_ms", "latency_low_ms", "latency_high_ms")
MOST_FIGURES = 8


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    rows = records(frame)
    yield from (Text(text=caution, kind="note") for caution in trust.cautions(rows, meta))
    timed = [
        group
        for group in groups(rows, "seq_len")
        if any(row["latency_ms"] is not None for row in group.rows)
    ]
    drawn = [group for group in timed if len({row["seq_len"] for row in group.rows}) > 1]
    if not drawn:
        why = (
            "no problem was planned at more than one N; the table of all rows has the latencies"
            if timed
            else "no case has a latency"
        )
        yield Text(text=f"There is nothing to draw over N: {why}.", kind="note")
        return
    for group in drawn[:MOST_FIGURES]:
        yield _figure(group, meta)
    if left := drawn[MOST_FIGURES:]:
        yield Text(
            text=(
                f"{plural(len(left), 'more problem')} not drawn:"
                f" {'; '.join(group.label for group in left)}."
            ),
            kind="note",
        )


def _figure(group: Group, meta: Meta) -> Figure:
    series: list[Series] = []
    timed_backends = backends(row for row in group.rows if row["latency_ms"] is not None)
    shown = [
        row
        for row in group.rows
        if row["backend"] in timed_backends
        and (row["latency_ms"] is not None or row["status"] != "ok")
    ]
    for backend in timed_backends:
        rows = sorted(
            (row for row in group.rows if row["backend"] == backend), key=lambda row: row["seq_len"]
        )
        lost = [row for row in rows if row["status"] != "ok"]
        series.append(
            Series(
                backend=backend,
                kind="measured",
                x=tuple(row["seq_len"] for row in rows),
                y=tuple(row["latency_ms"] for row in rows),
                low=tuple(row["latency_low_ms"] for row in rows),
                high=tuple(row["latency_high_ms"] for row in rows),
                cases=tuple(case_key(row) for row in rows),
            )
        )
        failed = tuple(row["seq_len"] for row in lost)
        series.append(
            Series(
                backend=backend,
                kind="failed",
                x=failed,
                y=(None,) * len(lost),
                cases=tuple(map(case_key, lost)),
            )
        )
    return Figure(
        title=group.said(speed.finding(group)),
        caption=caption(group.problem, meta) + absent(group.rows, shown),
        description=(
            "Latency over the sequence length N, both logarithmic, one line per backend, with 95 %"
            " intervals as bars. A cross at the upper edge marks a case that did not run. The table"
            " below has every number."
        ),
        panels=(
            Panel(
                x_label="sequence length N (1k = 1024)",
                y_label="latency",
                unit="ms",
                series=tuple(one for one in series if one.x),
            ),
        ),
        table=_table(group),
    )


def _table(group: Group) -> Table:
    names = backends(group.rows)
    lines, strong = [], set()
    for place, n in enumerate(sorted({row["seq_len"] for row in group.rows})):
        here = {row["backend"]: row for row in group.rows if row["seq_len"] == n}
        found = speed.race(list(here.values()))
        if found.clear:
            strong.add((place, 1 + names.index(found.ranking[0]["backend"])))
        lines.append(
            (count_text(n), *(_cell(here[name]) if name in here else "" for name in names))
        )
    return Table(
        title="Latency, with half the width of its 95 % interval",
        columns=("N", *names),
        rows=tuple(lines),
        strong=frozenset(strong),
    )


def _cell(row: Row) -> str:
    if row["latency_ms"] is None:
        return STATUS_WORDS[row["status"]] if row["status"] != "ok" else "not timed"
    low, high = row["latency_low_ms"], row["latency_high_ms"]
    half = f" ± {number_text(100 * ((high / low) ** 0.5 - 1))} %" if low and high else ""
    return time_text(row["latency_ms"]) + half
