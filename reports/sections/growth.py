"""How time and bytes grow with N: the exponent along N, the formula behind it, and what longer
sequences would need.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from math import isfinite

import pandas as pd

from ...harness.stats import Interval
from ..analysis.claims.counts import bytes_over_n
from ..analysis.claims.times import interval_text
from ..analysis.growth import FEWEST_LENGTHS, FURTHEST, Growth, growths, predict
from ..analysis.polynomial import Polynomial
from ..data.run_meta import Meta, caption
from ..data.row_groups import Group, axis_text, backends, groups, records
from ..elements import Block, Figure, Panel, Series, Table, Text
from ..formatting import bytes_text, count_text, list_text, number_text, plural, time_text

TITLE = "Growth with N"
ORDER = 42
NEEDS = ("latency_ms", "peak_bytes", "predicted_peak_bytes")
MOST_FIGURES = 4
MOST_PROBLEMS = 40
LONG = (10_000, 32 << 10, 128 << 10)
MOST_NAMED = 4
NOT_PREDICTED = "not predicted"
WIDEST = 1.0  # a slope whose interval is wider says nothing, and is not drawn


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    rows = records(frame)
    over_n = groups(rows, "seq_len")
    found = list(islice(growths(rows), MOST_PROBLEMS))
    fitted = [
        (group, members)
        for group, all_of in found
        if (members := [one for one in all_of if not one.reason])
    ]
    if not fitted:
        yield Text(
            text=(
                f"No growth of time is fitted: it needs one problem timed at {FEWEST_LENGTHS}"
                " lengths or more."
            ),
            kind="note",
        )
    else:
        yield Text(
            text=(
                "The exponent at N is that of N^x growing as fast as the time does there: 1 is"
                " linear, 2 quadratic. Points are measured, between the lengths before and after;"
                " dotted lines belong to a + b N + c N², fitted to relative errors. Times are"
                f" predicted up to {FURTHEST} times the longest measured N and no farther."
            ),
            kind="note",
        )
        yield from _too_few(found)
        for group, members in fitted[:MOST_FIGURES]:
            yield _figure(group, members, meta)
        if left := fitted[MOST_FIGURES:]:
            yield Text(
                text=f"{plural(len(left), 'further problem')} not drawn; the tables have them.",
                kind="note",
            )
        yield _formulas(fitted)
        if times := _times(fitted):
            yield Table(
                title=(
                    f"Times at long N, up to {FURTHEST} times the longest measured one, where the"
                    " formula fits"
                ),
                columns=("problem", "backend", *(f"at {_length_text(n)}" for n in LONG)),
                rows=tuple(times),
            )
    yield from _needs(over_n[:MOST_PROBLEMS])
    if len(over_n) > MOST_PROBLEMS:
        yield Text(
            text=(
                f"The first {MOST_PROBLEMS} of {len(over_n)} problems; attnbench.load gives the"
                " rows of all."
            ),
            kind="note",
        )


def _too_few(found: list[tuple[Group, list[Growth]]]) -> Iterator[Block]:
    """Who has no formula for want of lengths, by how many there are."""
    short = [
        (one.backend, len(one.lengths)) for _, members in found for one in members if one.reason
    ]
    if short:
        said = list_text(
            [f"{backend} ({plural(count, 'length')})" for backend, count in dict.fromkeys(short)]
        )
        yield Text(
            text=f"Not fitted, for want of {FEWEST_LENGTHS} timed lengths: {said}.", kind="note"
        )


# ---- time ----------------------------------------------------------------------------------------


def _figure(group: Group, members: list[Growth], meta: Meta) -> Figure:
    series: list[Series] = []
    for one in members:
        series.append(
            Series(
                backend=one.backend,
                kind="formula",
                x=one.lengths,
                y=tuple(found.value for found in one.exponents),
            )
        )
        points = [
            (n, slope)
            for n, slope in zip(one.lengths, one.slopes, strict=True)
            if slope is not None and _tells(slope)
        ]
        if points:
            series.append(
                Series(
                    backend=one.backend,
                    kind="measured",
                    x=tuple(n for n, _ in points),
                    y=tuple(slope.value for _, slope in points),
                    low=tuple(slope.low for _, slope in points),
                    high=tuple(slope.high for _, slope in points),
                )
            )
    return Figure(
        title=group.said(_finding(members)),
        caption=caption(group.problem, meta),
        description=(
            "The local exponent of time over the sequence length N, N logarithmic, the exponent"
            " linear, one line per backend. Points are measured, with 95 % intervals as bars; the"
            " dotted lines belong to the fitted formula. The table has every number."
        ),
        panels=(
            Panel(
                x_label="sequence length N (1k = 1024)",
                y_label="local exponent of time",
                unit="plain",
                series=tuple(series),
                line=(2, "quadratic"),
                y_scale="linear",
            ),
        ),
        table=_exponents(members),
    )


def _tells(slope: Interval) -> bool:
    return isfinite(slope.low) and slope.high - slope.low <= WIDEST


def _finding(members: list[Growth]) -> str:
    """Each backend's exponent at the longest N at which it was measured, which no formula is needed
    for.
    """
    found = []
    for one in members:
        n, slope = next(
            (n, slope)
            for n, slope in zip(reversed(one.lengths), reversed(one.slopes), strict=True)
            if slope is not None
        )
        found.append(
            (slope.value, f"{one.backend} {interval_text(slope)} at {axis_text('seq_len', n)}")
        )
    if len(found) > MOST_NAMED:
        found.sort()
        return f"the exponent of time is lowest with {found[0][1]}, highest with {found[-1][1]}"
    return f"exponent of time: {'; '.join(text for _, text in found)}"


def _off(one: Growth) -> str:
    return f"{number_text(100 * (one.worst[1] - 1))} %"


def _exponents(members: list[Growth]) -> Table:
    rows = [
        (
            count_text(n),
            one.backend,
            time_text(time),
            interval_text(found),
            interval_text(slope) if slope is not None else "",
        )
        for one in members
        for n, time, found, slope in zip(
            one.lengths, one.time_ms, one.exponents, one.slopes, strict=True
        )
    ]
    return Table(
        title="Local exponents",
        columns=("N", "backend", "time", "by formula", "measured"),
        rows=tuple(rows),
    )


def _formulas(fitted: list[tuple[Group, list[Growth]]]) -> Table:
    rows = [
        (
            group.label or "all",
            one.backend,
            _term_text(one.constant_ms, 1),
            _term_text(one.per_token_ms, 1000),
            _term_text(one.per_pair_ms, 1_000_000),
            interval_text(one.crossover) if one.crossover is not None else "not seen",
            f"{_off(one)} at {count_text(one.worst[0])}",
            "yes" if one.describes else "no",
        )
        for group, members in fitted
        for one in members
    ]
    columns = (
        "problem",
        "backend",
        "constant",
        "per 1000 N",
        "per (1000 N)²",
        "N² overtakes N at",
        "off by at most",
        "fits",
    )
    return Table(
        title=(
            "Time by formula: constant + b N + c N²; a term of 0 is not needed (its bound in"
            " brackets)"
        ),
        columns=columns,
        rows=tuple(rows),
    )


def _times(fitted: list[tuple[Group, list[Growth]]]) -> list[tuple[str, ...]]:
    """Lines with at least one time."""
    lines = [
        (group.label or "all", one.backend, *(_predicted(one, n) for n in LONG))
        for group, members in fitted
        for one in members
    ]
    return [line for line in lines if set(line[2:]) != {NOT_PREDICTED}]


def _term_text(found: Interval, times: int) -> str:
    value, low, high = (
        time_text(bound * times) if isfinite(bound) else ""
        for bound in (found.value, found.low, found.high)
    )
    if found.value == 0:
        return f"0 (up to {high})" if high and found.high > 0 else "0"
    return f"{value} ({low if found.low > 0 else '0'} to {high})" if low else value


def _predicted(one: Growth, n: int) -> str:
    if n in one.lengths:
        return f"{time_text(one.time_ms[one.lengths.index(n)])}, measured"
    found = predict(one, n)
    if not isfinite(found.value) or not one.describes:
        return NOT_PREDICTED
    between = f" ({time_text(found.low)} to {time_text(found.high)})" if isfinite(found.low) else ""
    return f"{time_text(found.value)}{between}"


# ---- bytes ---------------------------------------------------------------------------------------


def _needs(over_n: list[Group]) -> Iterator[Block]:
    """What each backend would need at lengths that nobody tried."""
    lines, left_out = [], []
    for group in over_n:
        for backend in backends(group.rows):
            measured, formula = (
                bytes_over_n(group.rows, backend, column)
                for column in ("peak_bytes", "predicted_peak_bytes")
            )
            solved = next(
                (one for one in (measured, formula) if one is not None and one.exact), None
            )
            if solved is None:
                if measured is not None and measured.off:
                    left_out.append(backend)
                continue
            by_n = {row["seq_len"]: row for row in group.rows if row["backend"] == backend}
            source = "measured" if solved is measured else "formula"
            lines.append(
                (
                    group.label or "all",
                    backend,
                    _polynomial_text(solved),
                    source,
                    _checked(solved),
                    *(_size(solved, by_n, n) for n in LONG),
                )
            )
    if lines:
        yield Text(
            text=(
                "Peak bytes are exact, so they are solved, not fitted, from the three longest"
                " lengths; every other one must agree to the byte. Where a short one does not,"
                " another moment of the call is its peak."
            ),
            kind="note",
        )
        columns = ("problem", "backend", "peak bytes", "solved from", "agree to the byte")
        yield Table(
            title="What a call would need at lengths that were not tried, beyond its inputs",
            columns=(*columns, *(f"at {_length_text(n)}" for n in LONG)),
            rows=tuple(lines),
        )
    else:
        yield Text(
            text=(
                "Bytes are not solved for N: that needs four lengths of one problem whose bytes are"
                " known and agree."
            ),
            kind="note",
        )
    if left_out:
        yield Text(
            text=(
                "Peak bytes that are no such polynomial:"
                f" {list_text(list(dict.fromkeys(left_out)))}."
            ),
            kind="note",
        )


def _polynomial_text(of: Polynomial) -> str:
    terms = [(of.quadratic, " N²"), (of.linear, " N"), (of.constant, "")]
    said = [
        f"{'−' if value < 0 else '+' if place else ''} {_number(abs(value))}{power}"
        for place, (value, power) in enumerate(terms)
        if value
    ]
    return (" ".join(said).removeprefix("+ ").strip() or "0") + " B"


def _number(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"{float(value):.6g}"


def _checked(of: Polynomial) -> str:
    if not of.off:
        return f"all {len(of.agrees) + len(of.solved)} lengths"
    return (
        f"from N = {count_text(of.holds_from)} on; not"
        f" {list_text([count_text(n) for n, _ in of.off])}"
    )


def _size(of: Polynomial, by_n: dict[int, dict[str, object]], n: int) -> str:
    row = by_n.get(n, {})
    for column, how in (("peak_bytes", ", measured"), ("predicted_peak_bytes", ", predicted")):
        if isinstance(size := row.get(column), int):
            return bytes_text(size) + how
    return bytes_text(float(of.at(n)))


def _length_text(n: int) -> str:
    return "N = 10 000" if n == 10_000 else f"N = {count_text(n)}"
