"""Latency over N with intervals, one figure per problem; failed cases are marked at the top."""

from collections.abc import Iterator

import pandas as pd

from ...harness.stats.wide_intervals import says_nothing
from ..analysis import speed
from ..analysis.missing_points import missing_points
from ..data.row_groups import Group, Row, backends, case_key, over_lengths, records
from ..data.run_meta import Meta, caption
from ..elements import Block, Figure, Series, Table, caution, note
from ..formatting import (
    STATUS_WORDS,
    UNCERTAIN,
    count_text,
    in_brackets,
    number_text,
    time_text,
)
from ..subjects import _trust as trust
from ..subjects._over_n import latency_series, multiples, not_drawn, panel

TITLE = "Latency"
ORDER = 40
NEEDS = ("latency_ms", "latency_low_ms", "latency_high_ms")
MOST_FIGURES = 8


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    rows = records(frame)
    yield from map(caution, trust.cautions(rows, meta))
    timed = trust.timed_rows(rows)
    drawn = [
        group
        for group in over_lengths(rows)
        if any(row["latency_ms"] is not None for row in group.rows)
    ]
    if not drawn:
        why = (
            "no problem was planned at more than one N; the table of all rows has the latencies"
            if timed
            else "no case has a latency"
        )
        yield note(f"There is nothing to draw over N: {why}.")
        return
    figures = [(group, _figure(group, meta)) for group in drawn[:MOST_FIGURES]]
    yield from multiples(figures, speed.tally(drawn))
    yield from not_drawn(drawn[MOST_FIGURES:])


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
        rows = group.of_backend(backend)
        failed = [row for row in rows if row["status"] != "ok"]
        series.append(latency_series(backend, rows))
        series.append(
            Series(
                backend=backend,
                kind="failed",
                x=tuple(row["seq_len"] for row in failed),
                y=(None,) * len(failed),
                cases=tuple(map(case_key, failed)),
            )
        )
    return Figure(
        title=group.prefixed(speed.finding(group)),
        caption=caption(group.problem, meta) + missing_points(group.rows, shown),
        description=(
            "Latency over the sequence length N, both logarithmic, one line per backend, with 95 %"
            " intervals as bars. A cross at the upper edge marks a case that failed. The table"
            " below has every number."
        ),
        panels=(panel("latency", "ms", [one for one in series if one.x]),),
        table=_table(group),
    )


def _table(group: Group) -> Table:
    names = backends(group.rows)
    lines, strong = [], set()
    for place, n in enumerate(group.lengths):
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
    if half and says_nothing(low, high):
        half = in_brackets(UNCERTAIN)
    return time_text(row["latency_ms"]) + half
