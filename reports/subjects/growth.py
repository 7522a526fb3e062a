"""How time and bytes grow with N and other sizes: exponents, formulas, needs at longer N."""

from collections.abc import Iterator, Sequence
from itertools import islice
from math import isfinite

from ...harness.stats.intervals import Interval
from ..data.exactness import baseline
from ..data.row_groups import (
    Group,
    Row,
    axis_text,
    axis_title,
    groups,
    value_text,
)
from ..data.run_meta import Meta, caption
from ..elements import Block, Card, Figure, Panel, Series, Table, Text, note
from ..formatting import count_text, list_text, number_text, plural, time_text
from ..growth_fit import FEWEST_LENGTHS, FURTHEST, Growth, growths, interval_text, predict
from . import Subject, testing_claims
from ._growth_along import SIZES, Along, growth_along, joint_finding, main_axis
from ._needs import LONG, NOT_PREDICTED, length_text, needs
from ._over import MOST_PANELS, challenges, time_panels, time_table
from ._over_n import N_LABEL, not_drawn

TITLE = "Growth"
ORDER = 14
NEEDS = ("latency_ms", "peak_bytes", "predicted_peak_bytes")
MOST_FIGURES = 4
MOST_PROBLEMS = 40
MOST_NAMED = 4
WIDEST = 1.0  # slopes with a wider interval are not drawn


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card is about the size that a scenario varies, if that is what it asks."""
    rows = list(rows)
    over_n = groups(rows, "seq_len")
    found = list(islice(growths(rows), MOST_PROBLEMS))
    fitted = [
        (group, fits)
        for group, every in found
        if (fits := [one for one in every if not one.reason])
    ]
    axis, card = _card(rows, meta)
    blocks: list[Block] = []
    if fitted:
        blocks += _growth_of_time(found, fitted, meta)
    for other in SIZES[1:]:
        blocks += _along(rows, other, meta, told=other == axis)
    blocks += needs(over_n[:MOST_PROBLEMS])
    if blocks and len(over_n) > MOST_PROBLEMS:
        blocks.append(
            note(
                f"The first {MOST_PROBLEMS} of {len(over_n)} problems; attnbench.load gives the"
                " rows of all."
            )
        )
    return Subject(
        card=card,
        blocks=tuple(blocks),
        lacking=f"No growth of time is fitted: it needs one problem timed at {FEWEST_LENGTHS}"
        " lengths or more. Bytes are not solved for N: that needs four lengths of one problem whose"
        " bytes are known and agree.",
    )


# ---- the card ------------------------------------------------------------------------------------


def _card(rows: list[Row], meta: Meta) -> tuple[str, Card | None]:
    """With its axis; none over N, where others answer: who fits, who is faster."""
    for name, run in meta.items():
        mine = [row for row in rows if row["run"] == name]
        over_n = testing_claims(meta) and any(map(challenges, mine))
        axis = "seq_len" if over_n else main_axis(mine, run)
        if axis and (found := growth_along(mine, axis)[:MOST_PANELS]):
            return axis, _of_axis(found, axis, baseline(run, mine) or "", meta)
    return "", None


def _of_axis(found: list[tuple[Group, list[Along]]], axis: str, lead: str, meta: Meta) -> Card:
    every = axis == "seq_len"  # the question is which of them grow
    groups = [group for group, _ in found]
    x = axis_title(axis)
    text = joint_finding(found, "" if every else lead)
    return Card(
        name="growth",
        title=f"Growth with {x}",
        sentence=f"{text[0].upper()}{text[1:]}.",
        picture=Figure(
            title=text,
            caption=caption(groups[0].problem, meta),
            description=(
                f"Latency over {x}, both logarithmic, one line per backend, with 95 % intervals as"
                " bars. The table below has every number."
            ),
            panels=time_panels(groups, axis),
            table=time_table(groups, axis),
        ),
        subtitle=f"latency over {x}",
        note="x is the slope between the ends: 1 is linear, 2 quadratic. Growth has every step.",
        wide=len(groups) > 2,
    )


# ---- time ----------------------------------------------------------------------------------------


def _growth_of_time(
    found: list[tuple[Group, list[Growth]]], fitted: list[tuple[Group, list[Growth]]], meta: Meta
) -> Iterator[Block]:
    yield note(
        "The exponent at N is that of a power N^x that grows as fast as the time there: 1 is"
        " linear, 2 quadratic. Points are measured, between the lengths before and after; dotted"
        " lines are of a + b N + c N², fitted to relative errors. Times are predicted up to"
        f" {FURTHEST} times the longest measured N."
    )
    yield from _too_few(found)
    for group, fits in fitted[:MOST_FIGURES]:
        yield _figure(group, fits, meta)
    yield from not_drawn([group for group, _ in fitted[MOST_FIGURES:]], "; the tables have them")
    yield _formulas(fitted)
    if times := _times(fitted):
        yield Table(
            title=(
                f"Times at long N, up to {FURTHEST} times the longest measured one, if the formula"
                " fits"
            ),
            columns=("problem", "backend", *(f"at {length_text(n)}" for n in LONG)),
            rows=tuple(times),
        )


def _too_few(found: list[tuple[Group, list[Growth]]]) -> Iterator[Block]:
    """The backends with too few lengths to fit."""
    short = dict.fromkeys(
        (one.backend, len(one.lengths)) for _, every in found for one in every if one.reason
    )
    if short:
        names = list_text([f"{name} ({plural(count, 'length')})" for name, count in short])
        yield note(f"Not fitted, as {FEWEST_LENGTHS} timed lengths are needed: {names}.")


def _figure(group: Group, fits: list[Growth], meta: Meta, axis: str = "seq_len") -> Figure:
    series: list[Series] = []
    for one in fits:
        exponents = tuple(found.value for found in one.exponents)
        series.append(Series(backend=one.backend, kind="formula", x=one.lengths, y=exponents))
        slopes = zip(one.lengths, one.slopes, strict=True)
        points = [(n, slope) for n, slope in slopes if slope is not None and _is_precise(slope)]
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
        title=group.prefixed(_finding(fits, axis)),
        caption=caption(group.problem, meta),
        description=(
            f"The local exponent of time over {axis_title(axis)}, logarithmic, the exponent"
            " linear, one line per backend. Points are measured, with 95 % intervals as bars; the"
            " dotted lines belong to the fitted formula. The table has every number."
        ),
        panels=(
            Panel(
                x_label=N_LABEL if axis == "seq_len" else axis_title(axis),
                y_label="local exponent of time",
                unit="plain",
                series=tuple(series),
                line=(2, "quadratic"),
                y_scale="linear",
            ),
        ),
        table=_exponents(fits, axis),
    )


def _is_precise(slope: Interval) -> bool:
    return isfinite(slope.low) and slope.high - slope.low <= WIDEST


def _finding(fits: list[Growth], axis: str) -> str:
    """Each backend's measured exponent at its longest N."""
    found = []
    for one in fits:
        slopes = zip(reversed(one.lengths), reversed(one.slopes), strict=True)
        n, slope = next((n, slope) for n, slope in slopes if slope is not None)
        text = f"{one.backend} {interval_text(slope)} at {axis_text(axis, n)}"
        found.append((slope.value, text))
    if len(found) > MOST_NAMED:
        found.sort()
        return f"the exponent of time is lowest for {found[0][1]}, highest for {found[-1][1]}"
    return f"exponent of time: {'; '.join(text for _, text in found)}"


def _off(one: Growth) -> str:
    return f"{number_text(100 * (one.worst[1] - 1))} %"


def _exponents(fits: list[Growth], axis: str) -> Table:
    rows = [
        (
            value_text(axis, n),
            one.backend,
            time_text(time),
            interval_text(found),
            interval_text(slope) if slope is not None else "",
        )
        for one in fits
        for n, time, found, slope in zip(
            one.lengths, one.time_ms, one.exponents, one.slopes, strict=True
        )
    ]
    return Table(
        title="Local exponents",
        columns=(axis_title(axis), "backend", "time", "by formula", "measured"),
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
        for group, fits in fitted
        for one in fits
    ]
    terms = ("constant", "per 1000 N", "per (1000 N)²")
    return Table(
        title=(
            "Time by formula: constant + b N + c N²; a term of 0 is not needed (its bound in"
            " brackets)"
        ),
        columns=("problem", "backend", *terms, "N² overtakes N at", "off by at most", "fits"),
        rows=tuple(rows),
    )


def _times(fitted: list[tuple[Group, list[Growth]]]) -> list[tuple[str, ...]]:
    """The lines with at least one time."""
    lines = [
        (group.label or "all", one.backend, *(_predicted(one, n) for n in LONG))
        for group, fits in fitted
        for one in fits
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


# ---- other sizes than N --------------------------------------------------------------------------


def _along(rows: list[Row], axis: str, meta: Meta, *, told: bool) -> Iterator[Block]:
    """From the smallest to the largest cache, width or batch; a figure where there is a fit.

    `told`: the card has the sentence.
    """
    found = growth_along(rows, axis)[:MOST_PROBLEMS]
    if not found:
        return
    for name, run in ({} if told and len(meta) == 1 else meta).items():
        if mine := [pair for pair in found if pair[0].problem["run"] == name]:
            lead = baseline(run, [row for group, _ in mine for row in group.rows]) or ""
            yield Text(text=f"{joint_finding(mine[:MOST_NAMED], lead)}.")
    fitted = [
        (group, fits)
        for group, every in islice(growths(rows, axis), MOST_FIGURES)
        if (fits := [one for one in every if not one.reason])
    ]
    for group, fits in fitted:
        yield _figure(group, fits, meta, axis)
    x = axis_title(axis)
    yield Table(
        title=f"Growth along {x}, from the smallest to the largest timed value",
        columns=(
            "problem",
            "backend",
            x,
            "time ratio",
            f"time grows as {x}^",
            f"peak bytes as {x}^",
            "word",
        ),
        rows=tuple(
            (
                group.label or "all",
                one.backend,
                f"{value_text(axis, one.first)} to {value_text(axis, one.last)}",
                one.time.text,
                interval_text(one.exponent),
                number_text(one.bytes_exponent),
                one.name or "undecided",
            )
            for group, some in found
            for one in some
        ),
    )


# ---- bytes ---------------------------------------------------------------------------------------
