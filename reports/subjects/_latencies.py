"""Every latency of a run: over N in figures, and beside the fastest in one table."""

from collections.abc import Iterator

from ...harness.stats.wide_intervals import says_nothing
from ..analysis.missing_points import missing_points
from ..data.exactness import exactness_note, is_exact, meanings
from ..data.row_groups import (
    Group,
    Row,
    axis_title,
    backends,
    case_key,
    distinguishing_axes,
    groups,
    value_text,
)
from ..data.run_meta import Meta, caption
from ..elements import Block, Figure, Series, Table, note
from ..formatting import (
    STATUS_WORDS,
    UNCERTAIN,
    count_text,
    in_brackets,
    number_text,
    time_text,
)
from ..ratio import time_ratio
from . import _race as speed
from ._over_n import latency_series, panel
from ._race import Race, race

MOST_TABLE_ROWS = 40


def figure(group: Group, meta: Meta) -> Figure:
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
        table=_over_n(group),
    )


def _over_n(group: Group) -> Table:
    names = backends(group.rows)
    lines, strong = [], set()
    for place, n in enumerate(group.lengths):
        here = {row["backend"]: row for row in group.rows if row["seq_len"] == n}
        found = speed.race(list(here.values()))
        if found.clear:
            strong.add((place, 1 + names.index(found.ranking[0]["backend"])))
        lines.append(
            (count_text(n), *(_latency(here[name]) if name in here else "" for name in names))
        )
    return Table(
        title="Latency, with half the width of its 95 % interval",
        columns=("N", *names),
        rows=tuple(lines),
        strong=frozenset(strong),
    )


def _latency(row: Row) -> str:
    if row["latency_ms"] is None:
        return STATUS_WORDS[row["status"]] if row["status"] != "ok" else "not timed"
    low, high = row["latency_low_ms"], row["latency_high_ms"]
    half = f" ± {number_text(100 * ((high / low) ** 0.5 - 1))} %" if low and high else ""
    if half and says_nothing(low, high):
        half = in_brackets(UNCERTAIN)
    return time_text(row["latency_ms"]) + half


def table(rows: list[Row]) -> Iterator[Block]:
    """The winner map: every latency as a multiple of the fastest, or why there is none."""
    problems = groups(rows, None)
    axes = distinguishing_axes(rows)
    names = backends(rows)
    lines, strong, failed, cases = [], set(), set(), {}
    for line, group in enumerate(problems[:MOST_TABLE_ROWS]):
        by_backend = {row["backend"]: row for row in group.rows}
        ranking = race(group.rows)
        if ranking.clear:
            strong.add((line, len(axes) + names.index(ranking.ranking[0]["backend"])))
        for place, name in enumerate(names, start=len(axes)):
            if name in by_backend:
                cases[line, place] = case_key(by_backend[name])
                if by_backend[name]["status"] != "ok":
                    failed.add((line, place))
        cells = [beside(by_backend[name], ranking) if name in by_backend else "" for name in names]
        lines.append((*(value_text(axis, group.problem[axis]) for axis in axes), *cells))
    inexact = [row for row in rows if not is_exact(row)]
    yield Table(
        title=(
            "Who wins where: latency, and its ratio to the fastest; bold: faster by more than"
            f" noise{' than every other exact backend' if inexact else ''}; tie: not clearly slower"
            " than the fastest"
        ),
        columns=(*(axis_title(axis) for axis in axes), *names),
        rows=tuple(lines),
        strong=frozenset(strong),
        failed=frozenset(failed),
        cases=cases,
    )
    if inexact:
        yield note(f"Not ranked: {'; '.join(meanings(inexact))}.")
    if len(problems) > MOST_TABLE_ROWS:
        yield note(f"{len(problems) - MOST_TABLE_ROWS} more problems are in the table of all rows.")


def beside(row: Row, ranking: Race) -> str:
    """`58.7 ms · fastest`, `63.1 ms · ×1.08 · tie`, `out of memory`."""
    if row["status"] != "ok":
        return STATUS_WORDS[row["status"]]
    if row["latency_ms"] is None:
        return "not timed"
    text, ranked = time_text(row["latency_ms"]), ranking.ranking
    if not is_exact(row):
        ratio = time_ratio(row, ranked[0]) if ranked else None
        times = f" · ×{number_text(ratio.value)}" if ratio else ""
        return f"{text}{times} · {exactness_note(row)}"
    if not ranking.margins:
        return f"{text} · the only {'exact ' if ranking.inexact else ''}one"
    if row is ranked[0]:
        return f"{text} · {'fastest' if ranking.clear else speed.tie_text(ranking)}"
    # the paired ratio, as the card and the verdict have it; that of the medians may be far off it
    margin = next(
        margin
        for other, margin in zip(ranked[1:], ranking.margins, strict=True)
        if other["case"] == row["case"]
    )
    tie = "" if margin.clear else " · tie"
    return f"{text} · ×{number_text(margin.value)}{tie}"
