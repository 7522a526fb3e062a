"""What claims are judged by: ratios along an axis, growth along one, and exact bytes.

Each takes cases and a column of theirs, and yields a `Found` for every backend and problem that has
it.
"""

from collections.abc import Iterator, Sequence
from math import inf, isnan, log, nan
from typing import TYPE_CHECKING, Any

from ..contrasts import Contrast
from ..data.polynomial import FEWEST, bytes_over_n, coefficient_text, flops_over, through
from ..data.row_groups import AXES, axis_title, backends, by, groups, label, problem, varying_axes
from ..formatting import count_text, in_brackets, number_text
from ..growth_fit import growths, interval_text
from ..judging.over import over
from ..words import DISTURBED
from .claim import Found

if TYPE_CHECKING:
    import pandas as pd

BUSY = f"{DISTURBED}: to be measured again on an idle machine"
ITEM_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
UNITS = {
    "peak_bytes": "bytes",
    "needed_bytes": "bytes",
    "input_bytes": "bytes of inputs",
    "work_flops": "FLOPs",
}
LEAST, MOST = "min", "max"
PAST_CROSSING = 4  # times the N at which FLOPs cross: there four fifths of them are in N²
Some = Iterator[Found]


def ratios(
    cases: "pd.DataFrame",
    column: str,
    *,
    axis: str,
    base: Any,
    apart: Sequence[str] = (),
    share: bool = False,
) -> Some:
    """Cases over the one that differs only in an axis: in its `base` value, or the least or most of
    them. `apart`: axes that change with it. `share`: over what the axis makes of it in proportion.
    """
    others = [one for one in ("backend", *AXES) if one not in (axis, *apart)]
    if base in (LEAST, MOST):
        base = cases.groupby(others, dropna=False)[axis].transform(base)
    is_base = cases[axis] == base
    pairs = over(cases[~is_base], cases[is_base], others)
    varying = [one for one in varying_axes([*map(problem, pairs["row"])]) if one in others]
    for row, of, time in pairs[["row", "row_base", "time"]].to_numpy().tolist():
        one, part = Contrast(axis=axis, row=row, base=of), row[axis] / of[axis] if share else 1
        at = f"{one.against}{in_brackets(label(problem(row), varying))}"
        at += f", in proportion {number_text(part)}" if share else ""
        doubt = "" if one.of_heads else f"; {one.kernels}"
        if column == "latency_ms":
            if time is not None:
                low, high, doubt = time.low / part, time.high / part, doubt or BUSY * time.disturbed
                yield Found(row["backend"], column, low, high, f"{time.text}, {at}", doubt)
            continue
        # with what is kept between calls, where that is known
        ratio = one.peak_bytes if column == "needed_bytes" else one.counted(column)
        if not isnan(ratio):
            text = f"{number_text(ratio)} times the {UNITS[column]}, {at}"
            yield Found(row["backend"], column, ratio / part, ratio / part, text, doubt)


def exponents(cases: "pd.DataFrame", column: str, *, along: str) -> Some:
    """Between the three largest N, or values of another axis; of what is counted the degree of its
    polynomial, if it is exactly one.
    """
    rows, symbol = cases["row"].tolist(), axis_title(along)
    for group, every in growths(rows, along) if column == "latency_ms" else ():
        for found in (one for one in every if not one.reason):
            power, (first, _, last) = found.at_longest, map(count_text, found.lengths[-3:])
            text = f"{symbol}^{interval_text(power)} in time over {symbol} = {first} to {last}"
            text += in_brackets(group.label)
            doubt = BUSY * found.disturbed
            yield Found(found.backend, column, power.low, power.high, text, doubt, found.most)
    for group in groups(rows, along) if column in UNITS else ():
        for backend, mine in by(group.rows, lambda row: str(row["backend"])).items():
            counts = {row[along]: int(row[column]) for row in mine if row.get(column)}
            if len(counts) > FEWEST and (solved := through(counts)):
                least, _, most = solved.solved
                degree = log(counts[most] / counts[least]) / log(most / least)
                if solved.exact:
                    degree = 2 if solved.quadratic > 0 else int(solved.linear > 0)
                text = f"{symbol}^{number_text(degree)} in {UNITS[column]}"
                text += f" over {symbol} = {count_text(least)} to {count_text(most)}"
                text += in_brackets(group.label)
                yield Found(backend, column, degree, degree, text)


def score_matrices(cases: "pd.DataFrame", column: str, *, of_all_heads: bool) -> Some:
    """The N² coefficient of exact bytes, over that of the two score matrices of one head or all."""
    for group in groups(cases["row"].tolist(), "seq_len"):
        of = group.problem
        two = (
            2 * of["batch"] * ITEM_BYTES.get(of["dtype"], 0) * (of["heads"] if of_all_heads else 1)
        )
        for backend in backends(group.rows) if two else ():
            if found := bytes_over_n(group.rows, backend, column):
                text = f"{coefficient_text(found.quadratic)} bytes per N², where"
                text += f" 2 B {'h ' * of_all_heads}e is {two}{in_brackets(group.label)}"
                doubt = "" if found.exact else ", but no fourth length agrees"
                share = float(found.quadratic / two)
                yield Found(backend, column, share, share, text, doubt)


def crossings(cases: "pd.DataFrame", column: str) -> Some:
    """The N from which N² takes most of a layer's time, over the one by FLOPs."""
    for group, every in growths(cases["row"].tolist()):
        counts = flops_over(group.rows)
        if counts is None or counts.quadratic <= 0 or counts.linear <= 0:
            continue  # a mask may leave no N² to be taken over by
        by_flops = float(counts.linear / counts.quadratic)
        for found in (one for one in every if not one.reason):
            last, power, over = found.lengths[-1], found.at_longest, found.crossover
            is_flat = last >= PAST_CROSSING * by_flops and power.high < 1.5
            low, high = (over.low, over.high) if over else (last, inf) if is_flat else (nan, nan)
            doubt = BUSY * found.disturbed
            if not found.describes:
                n, off = found.worst
                doubt = f"; the formula is off by {number_text(off)} times at N = {count_text(n)}"
            elif not is_flat and found.lengths[0] * PAST_CROSSING > by_flops:
                doubt = doubt or f"; too close to the shortest N, {found.lengths[0]}"
            text = f"N^{interval_text(power)} up to N = {count_text(last)}; N² takes over at N = "
            text += f"{interval_text(over) if over else 'none'}, by FLOPs {number_text(by_flops)}"
            yield Found(found.backend, column, low / by_flops, high / by_flops, text, doubt)
