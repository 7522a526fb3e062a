"""Approximate attention: its error over rank and N, and from which N on it is faster than exact
attention.
"""

from collections.abc import Iterator, Sequence

import pandas as pd

from ..analysis.approximate import (
    SIZES,
    Trade,
    approximating,
    family,
    finding,
    overtakings,
    size,
    trades,
)
from ..analysis.rows import case_key
from ..data.run_meta import Meta, caption
from ..data.exactness import error_text
from ..data.row_groups import Group, Row, axis_text, backends, records
from ..elements import Block, Figure, Panel, Series, Table, Text
from ..formatting import bytes_text, count_text, plural, time_text

TITLE = "Approximate attention"
ORDER = 44
NEEDS = ("exactness", "error_l2_ratio", "latency_ms")
MOST_FIGURES = 4


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    found = approximating(records(frame))
    if not found:
        yield Text(text="No backend that approximates attention was timed.", kind="note")
        return
    yield Text(
        text=(
            "The error is the distance from exact attention over its size (relative L2, the worst"
            " of output and gradients), on random inputs that nobody trained the approximation for."
            " Trained weights may do better: these numbers are a measurement, not a verdict."
        ),
        kind="note",
    )
    for group in found[:MOST_FIGURES]:
        yield from _of_problem(group, meta)
    if left := found[MOST_FIGURES:]:
        yield Text(
            text=(
                f"{plural(len(left), 'more problem')} not drawn:"
                f" {'; '.join(group.label for group in left)}."
            ),
            kind="note",
        )


def _of_problem(group: Group, meta: Meta) -> Iterator[Block]:
    made = trades(group)
    if drawn := _errors(group, made):
        yield Figure(
            title=group.said(_error_finding(made)),
            caption=caption(group.problem, meta),
            description=(
                "Relative error of approximate attention, logarithmic, one panel over its rank or"
                " number of features at the longest N, one over N. The table below has every"
                " number."
            ),
            panels=drawn,
            table=_table(made),
        )
    found = overtakings(group)
    if found and len({row["seq_len"] for row in group.rows}) > 1:
        names = list(dict.fromkeys([one.against for one in found] + [one.backend for one in found]))
        yield Figure(
            title=group.said(finding(group)),
            caption=caption(group.problem, meta),
            description=(
                "Latency over the sequence length N, both logarithmic, of approximate backends and"
                " of exact ones beside them, with 95 % intervals as bars. The table below says from"
                " which N on which is faster."
            ),
            panels=(
                Panel(
                    x_label="sequence length N (1k = 1024)",
                    y_label="latency",
                    unit="ms",
                    series=_latencies(group.rows, names),
                ),
            ),
            table=Table(
                title=(
                    "From which N on an approximate backend is faster than an exact one, by more"
                    " than noise"
                ),
                columns=("backend", "than", "faster"),
                rows=tuple((one.backend, one.against, one.text) for one in found),
            ),
        )


# ---- errors --------------------------------------------------------------------------------------


def _errors(group: Group, made: Sequence[Trade]) -> tuple[Panel, ...]:
    """Over the size where a family has several at the longest N, and over N where there are
    several.
    """
    known = [one for one in made if one.error_l2_ratio]
    longest = max((one.row["seq_len"] for one in known), default=0)
    sized = [one for one in known if one.row["seq_len"] == longest and size(one.row) is not None]
    families = list(dict.fromkeys(family(one.row["backend"]) for one in sized))
    over_size = [
        _over_size(name, [one for one in sized if family(one.row["backend"]) == name])
        for name in families
    ]
    panels = []
    if any(len(series.x) > 1 for series in over_size):
        panels.append(
            _panel(f"{' or '.join(SIZES)}, at {axis_text('seq_len', longest)}", over_size)
        )
    if len({one.row["seq_len"] for one in known}) > 1:
        names = backends(one.row for one in known)
        panels.append(
            _panel(
                "sequence length N (1k = 1024)",
                [
                    _over_n(name, [one for one in known if one.row["backend"] == name])
                    for name in names
                ],
            )
        )
    return tuple(panels)


def _panel(x_label: str, series: Sequence[Series]) -> Panel:
    return Panel(x_label=x_label, y_label="relative error", unit="share", series=tuple(series))


def _over_size(name: str, made: Sequence[Trade]) -> Series:
    ordered = sorted((size(one.row) or 0, one.error_l2_ratio, case_key(one.row)) for one in made)
    return _series(name, ordered)


def _over_n(name: str, made: Sequence[Trade]) -> Series:
    return _series(
        name, sorted((one.row["seq_len"], one.error_l2_ratio, case_key(one.row)) for one in made)
    )


def _series(name: str, points: Sequence[tuple[int, float | None, str]]) -> Series:
    xs, ys, keys = zip(*points, strict=True)
    return Series(backend=name, kind="measured", x=xs, y=ys, cases=keys)


def _error_finding(made: Sequence[Trade]) -> str:
    """The smallest and the largest error at the longest N."""
    longest = max(one.row["seq_len"] for one in made if one.error_l2_ratio)
    known = sorted(
        (one.error_l2_ratio, one.row["backend"])
        for one in made
        if one.error_l2_ratio and one.row["seq_len"] == longest
    )
    (low, best), (high, worst) = known[0], known[-1]
    where = f"at {axis_text('seq_len', longest)}"
    if best == worst:
        return f"{best} is off by {error_text(low)} {where}"
    return f"{where} {best} is off by {error_text(low)}, {worst} by {error_text(high)}"


def _table(made: Sequence[Trade]) -> Table:
    rows, cases = [], {}
    for place, one in enumerate(made):
        row, ratio = one.row, one.ratio
        cases[place, 1] = case_key(row)
        rows.append(
            (
                count_text(row["seq_len"]),
                row["backend"],
                "" if size(row) is None else str(size(row)),
                "not measured" if one.error_l2_ratio is None else error_text(one.error_l2_ratio),
                time_text(row["latency_ms"]),
                "" if ratio is None else f"{one.against}: {ratio.text}",
                bytes_text(row.get("peak_bytes")),
            )
        )
    columns = (
        "N",
        "backend",
        "size",
        "error",
        "time",
        "time over the fastest exact backend",
        "peak bytes",
    )
    return Table(
        title="What an approximation costs in error, and buys in time",
        columns=columns,
        rows=tuple(rows),
        cases=cases,
    )


# ---- time ----------------------------------------------------------------------------------------


def _latencies(rows: Sequence[Row], names: Sequence[str]) -> tuple[Series, ...]:
    series = []
    for name in names:
        mine = sorted(
            (row for row in rows if row["backend"] == name and row["latency_ms"] is not None),
            key=lambda row: row["seq_len"],
        )
        series.append(
            Series(
                backend=name,
                kind="measured",
                x=tuple(row["seq_len"] for row in mine),
                y=tuple(row["latency_ms"] for row in mine),
                low=tuple(row["latency_low_ms"] for row in mine),
                high=tuple(row["latency_high_ms"] for row in mine),
                cases=tuple(map(case_key, mine)),
            )
        )
    return tuple(series)
