"""Approximate attention: its error over size and N, and from which N on it is faster than exact."""

from collections.abc import Iterator, Sequence

import pandas as pd

from ..analysis.approximate import (
    SIZES,
    Trade,
    approximating,
    crossovers,
    emptiness,
    finding,
    method,
    projection_texts,
    projections,
    size,
    trades,
)
from ..data.exactness import error_text
from ..data.row_groups import Group, Row, axis_text, backends, case_key, records
from ..data.run_meta import Meta, caption
from ..elements import Block, Figure, Panel, Series, Table, note
from ..formatting import bytes_text, count_text, time_text
from ..subjects._over_n import N_LABEL, latency_series, not_drawn, panel

TITLE = "Approximate attention"
ORDER = 44
NEEDS = ("exactness", "error_l2_ratio", "latency_ms")
MOST_FIGURES = 4


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    found = approximating(records(frame))
    if not found:
        yield note("No backend that approximates attention was timed.")
        yield from _projections(meta)
        return
    yield note(
        "The error is the distance from exact attention over its size (relative L2, the worst of"
        " output and gradients), on random inputs and untrained weights. Trained weights may do"
        " better. The cosine is that of the angle between the output and the exact one, over all"
        " rows that are checked: 1 is equal but for a factor, 0 has nothing in common with it."
    )
    for group in found[:MOST_FIGURES]:
        yield from _of_problem(group, meta)
    yield from not_drawn(found[MOST_FIGURES:])
    yield from _projections(meta)


def _projections(meta: Meta) -> Iterator[Block]:
    """Of the first run with the study."""
    for run in meta.values():
        found = projections(run)
        if not found:
            continue
        first = found[0]
        yield Table(
            title=(
                f"What Linformer's projections keep of attention, N = {first['seq_len']}, rank"
                f" {first['rank']}: cosine and error on other inputs of the same kind"
            ),
            columns=("inputs", "projections", "cosine", "error"),
            rows=tuple((one.inputs, one.projections, *projection_texts(one)) for one in found),
        )
        yield note(
            f"Means over {first['seeds']} seeds with 95 % intervals. Trained: the two projections"
            " alone, in a few steps, to bring the output close to the exact one. Small and random:"
            " a trained model may keep more."
        )
        return


def _of_problem(group: Group, meta: Meta) -> Iterator[Block]:
    made = trades(group)
    if drawn := _errors(made):
        yield Figure(
            title=group.prefixed(_error_finding(made)),
            caption=caption(group.problem, meta),
            description=(
                "Relative error of approximate attention, logarithmic, one panel over its rank or"
                " number of features at the longest N, one over N. The table below has every"
                " number."
            ),
            panels=drawn,
            table=_table(made),
        )
    if text := emptiness(group):
        yield note(group.prefixed(f"{text[0].upper()}{text[1:]}"))
    found = crossovers(group)
    if found and len(group.lengths) > 1:
        names = dict.fromkeys([one.against for one in found] + [one.backend for one in found])
        timed = [row for row in group.rows if row["latency_ms"] is not None]
        yield Figure(
            title=group.prefixed(finding(group)),
            caption=caption(group.problem, meta),
            description=(
                "Latency over the sequence length N, both logarithmic, of approximate and exact"
                " backends, with 95 % intervals as bars. The table below has the crossovers."
            ),
            panels=(
                panel(
                    "latency",
                    "ms",
                    [latency_series(name, _of_backend(timed, name)) for name in names],
                ),
            ),
            table=Table(
                title="From which N on an approximate backend is clearly faster than an exact one",
                columns=("backend", "than", "faster"),
                rows=tuple((one.backend, one.against, one.text) for one in found),
            ),
        )


def _of_backend(rows: list[Row], name: str) -> list[Row]:
    mine = (row for row in rows if row["backend"] == name)
    return sorted(mine, key=lambda row: row["seq_len"])


def _errors(made: Sequence[Trade]) -> tuple[Panel, ...]:
    """Over the size, if a family has several sizes at the longest N; and over N."""
    known = [one for one in made if one.error_l2_ratio]
    longest = max((one.row["seq_len"] for one in known), default=0)
    sized = [one for one in known if one.row["seq_len"] == longest and size(one.row) is not None]
    over_size = [
        _series(_drawn_as(of), [(size(one.row) or 0, one) for one in of])
        for name in dict.fromkeys(map(_family, sized))
        for of in [[one for one in sized if _family(one) == name]]
    ]
    panels = []
    if any(len(series.x) > 1 for series in over_size):
        label = f"{' or '.join(SIZES)}, at {axis_text('seq_len', longest)}"
        panels.append(_panel(label, over_size))
    if len({one.row["seq_len"] for one in known}) > 1:
        over_n = [
            _series(
                name, [(one.row["seq_len"], one) for one in known if one.row["backend"] == name]
            )
            for name in backends(one.row for one in known)
        ]
        panels.append(_panel(N_LABEL, over_n))
    return tuple(panels)


def _drawn_as(family: Sequence[Trade]) -> str:
    """Its own name if that is a backend, else its largest one: the legend has names of backends."""
    names = {one.row["backend"] for one in family}
    largest = max(family, key=lambda one: size(one.row) or 0)
    return name if (name := _family(largest)) in names else str(largest.row["backend"])


def _family(one: Trade) -> str:
    return method(one.row["backend"])


def _panel(x_label: str, series: Sequence[Series]) -> Panel:
    return Panel(x_label=x_label, y_label="relative error", unit="share", series=tuple(series))


def _series(name: str, points: Sequence[tuple[int, Trade]]) -> Series:
    ordered = sorted((x, one.error_l2_ratio, case_key(one.row)) for x, one in points)
    xs, ys, keys = zip(*ordered, strict=True)
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
                _cosine(row),
                time_text(row["latency_ms"]),
                "" if ratio is None else f"{one.against}: {ratio.text}",
                bytes_text(row.get("peak_bytes")),
            )
        )
    fastest = "time over the fastest exact backend"
    columns = ("N", "backend", "size", "error", "cosine", "time", fastest, "peak bytes")
    return Table(
        title="Error and time of approximations",
        columns=columns,
        rows=tuple(rows),
        cases=cases,
    )


def _cosine(row: Row) -> str:
    cosine = row.get("output_cosine")
    return "not measured" if cosine is None else f"{cosine:.2f}"
