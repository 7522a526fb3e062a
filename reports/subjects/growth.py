"""How time and bytes grow with N and other sizes: exponents, formulas, needs at longer N."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from math import isfinite

from ...harness.stats.intervals import Interval
from ..contrasts import asks_for
from ..data.exactness import baseline
from ..data.polynomial import Polynomial, bytes_over_n
from ..data.row_groups import Group, Row, axis_text, axis_title, backends, by, groups, value_text
from ..data.run_meta import Meta
from ..elements import Block, Card, Text, note, table_of
from ..formatting import (
    bytes_text,
    capital,
    count_text,
    length_text,
    list_text,
    number_text,
    plural,
    time_text,
)
from ..growth_fit import FEWEST_LENGTHS, FURTHEST, Growth, growths, interval_text, predict
from ..quantity import Number, Quantity
from . import Subject, testing_claims
from ._growth_along import SIZES, growth_along, joint_finding, main_axis
from ._over import MOST_PANELS, challenges, joined, latencies

TITLE = "Growth"
SECTION = "asked"
APART = True
ORDER = 14
LONG = (10_000, 32 << 10, 128 << 10)
NOT_PREDICTED = "not predicted"
MOST_PROBLEMS = 40
MOST_NAMED = 4
Found = Sequence[tuple[Group, list[Growth]]]
Need = tuple[Group, str, Polynomial, str]  # of a backend, and what it is solved from


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card is about the size that a scenario varies, if that is what it asks."""
    rows = list(rows)
    over_n = groups(rows, "seq_len")
    blocks = [*_growth_of_time(list(islice(growths(rows), MOST_PROBLEMS)))]
    for other in SIZES[1:]:
        blocks += _along(rows, other)
    blocks += _needs(over_n[:MOST_PROBLEMS])
    if blocks and len(over_n) > MOST_PROBLEMS:
        blocks.append(
            note(
                f"The first {MOST_PROBLEMS} of {len(over_n)} problems; attnbench.load gives the"
                " rows of all."
            )
        )
    return Subject(
        card=_card(rows, meta),
        lines=tuple(_lines(rows, meta)),
        blocks=tuple(blocks),
        lacking="No growth of time is told: it needs one problem timed at three lengths or more."
        f" A formula needs {FEWEST_LENGTHS}. Bytes are not solved for N: that needs four lengths of"
        " one problem whose bytes are known and agree.",
    )


# ---- along any size ------------------------------------------------------------------------------


def _card(rows: list[Row], meta: Meta) -> Card | None:
    """None over N, where others answer: who fits, who is faster."""
    for name, run in meta.items():
        mine = [row for row in rows if row["run"] == name]
        over_n = testing_claims(meta) and any(map(challenges, mine))
        axis = "seq_len" if over_n else main_axis(mine, run)
        if axis and (found := growth_along(mine, axis)[:MOST_PANELS]):
            # over N the question is which of them grow
            text = joint_finding(found, "" if over_n else baseline(run, mine) or "")
            x, how = axis_title(axis), "x is the slope between the ends: 1 is linear, 2 quadratic."
            return Card(
                title=f"Growth with {x}",
                sentence=f"{capital(text)}.",
                picture=latencies([group for group, _ in found], text, meta, axis=axis),
                subtitle=f"latency over {x}",
                note=f"{how} Growth has every step.",
            )
    return None


def _lines(rows: list[Row], meta: Meta) -> Iterator[str]:
    """Of a run that varies N and other sizes: a sentence on each that is no contrast, from the
    largest problem; of N and d_model, where one answer would leave out the other.
    """
    for name, run in meta.items():
        mine = [row for row in rows if row["run"] == name]
        along = {axis: growth_along(mine, axis) for axis in SIZES if not asks_for(run, axis)}
        varied = {axis: found for axis, found in along.items() if found}
        if len(varied) > 1 and not testing_claims(meta):
            for found in varied.values():
                group, some = max(found, key=lambda one: _work(one[0]))
                yield f"{capital(joint_finding([(group, some)]))}."


def _work(group: Group) -> float:
    return max(row.get("work_flops") or 0 for row in group.rows)


def _along(rows: list[Row], axis: str) -> Iterator[Block]:
    """From the smallest to the largest cache, width or batch; each step where there is a fit."""
    found = growth_along(rows, axis)[:MOST_PROBLEMS]
    if not found:
        return
    yield from _exponents(islice(growths(rows, axis), MOST_PANELS), axis)
    x = axis_title(axis)
    yield table_of(
        f"Growth along {x}, from the smallest to the largest timed value",
        [(group, one) for group, some in found for one in some],
        {
            "problem": lambda line: line[0].label or "all",
            "backend": lambda line: line[1].backend,
            x: lambda line: Number(
                f"{value_text(axis, line[1].first)} to {value_text(axis, line[1].last)}"
            ),
            "time ratio": lambda line: Number(line[1].time.text),
            f"time grows as {x}^": lambda line: Number(interval_text(line[1].exponent)),
            f"peak bytes as {x}^": lambda line: line[1].bytes_exponent,
            "word": lambda line: line[1].name or "not decided",
        },
    )


# ---- fits of time --------------------------------------------------------------------------------


def _lengths(of: Iterable[Growth]) -> str:
    """`4 and 2 lengths`: how many each of them has."""
    *others, last = dict.fromkeys(len(one.lengths) for one in of)
    return list_text([*map(str, others), plural(last, "length")])


def _growth_of_time(found: Found) -> Iterator[Block]:
    steps = [*_exponents(found)]
    if not steps:
        return
    yield note(
        "The exponent at N is that of a power N^x that grows as fast as the time there: 1 is"
        " linear, 2 quadratic. It is measured between the lengths before and after. The formula is"
        " a + b N + c N², fitted to relative errors, and predicts times up to"
        f" {FURTHEST} times the longest measured N; its terms may be negative."
    )
    short = by((one for _, every in found for one in every if one.reason), lambda one: one.backend)
    if short:
        names = list_text([f"{name} ({_lengths(mine)})" for name, mine in short.items()])
        yield note(f"No formula, as {FEWEST_LENGTHS} timed lengths are needed: {names}.")
    yield from steps
    lines = [
        (group.label or "all", one) for group, every in found for one in every if not one.reason
    ]
    if not lines:
        return
    yield table_of(
        "Time by formula: constant + b N + c N²; a term whose interval holds 0 is not shown to"
        " be there",
        lines,
        {
            "problem": lambda line: line[0],
            "backend": lambda line: line[1].backend,
            "constant": lambda line: _term_text(line[1].constant_ms, 1),
            "per 1000 N": lambda line: _term_text(line[1].per_token_ms, 1000),
            "per (1000 N)²": lambda line: _term_text(line[1].per_pair_ms, 1_000_000),
            "N² overtakes N at": lambda line: (
                Number(interval_text(line[1].crossover)) if line[1].crossover else "not seen"
            ),
            "off by at most": lambda line: Number(
                f"{number_text(100 * (line[1].worst[1] - 1))} % at {count_text(line[1].worst[0])}"
            ),
            "fits": lambda line: "yes" if line[1].describes else "no",
        },
    )
    known = [line for line in lines if any(_predicted(n, line) != NOT_PREDICTED for n in LONG)]
    if known:
        yield table_of(
            f"Times up to {FURTHEST} times the longest measured N, if the formula fits",
            known,
            {
                "problem": lambda line: line[0],
                "backend": lambda line: line[1].backend,
                **{_at(n): partial(_predicted, n) for n in LONG},
            },
        )


def _term_text(found: Interval, times: int) -> str:
    value, low, high = (_signed(bound * times) for bound in (found.value, found.low, found.high))
    return Number(f"{value} ({low} to {high})" if low else value)


def _signed(ms: float) -> str:
    if not isfinite(ms) or ms == 0:
        return "0" if ms == 0 else ""
    return f"{'−' * (ms < 0)}{time_text(abs(ms))}"


def _predicted(n: int, line: tuple[str, Growth]) -> str:
    one = line[1]
    if n in one.lengths:
        return Number(f"{time_text(one.time_ms[one.lengths.index(n)])}, measured")
    found = predict(one, n)
    if not isfinite(found.value) or not one.describes:
        return NOT_PREDICTED
    between = f" ({time_text(found.low)} to {time_text(found.high)})" if isfinite(found.low) else ""
    return Number(f"{time_text(found.value)}{between}")


def _exponents(
    found: Iterable[tuple[Group, list[Growth]]], axis: str = "seq_len"
) -> Iterator[Block]:
    """What the end of a line in the chart of times says, at each size."""
    every = [(group, [one for one in some if any(one.exponents)]) for group, some in found]
    if not (shown := [(group, some) for group, some in every if some]):
        return
    yield Text(text=f"{joined([(group, _finding(some, axis)) for group, some in shown])}.")
    yield table_of(
        f"Exponents of time at each {axis_title(axis)}",
        [
            (group.label, one, *of)
            for group, some in shown
            for one in some
            for of in zip(one.lengths, one.time_ms, one.exponents, strict=True)
        ],
        {
            "problem": lambda line: line[0],
            axis_title(axis): lambda line: value_text(axis, line[2]),
            "backend": lambda line: line[1].backend,
            "time": lambda line: Quantity(line[3], "ms"),
            "exponent": lambda line: Number(interval_text(line[4]) if line[4] else ""),
        },
        optional=("problem",),
        folded=True,
    )


def _finding(every: list[Growth], axis: str) -> str:
    """Each backend's exponent between its three largest sizes."""
    found = []
    for one in every:
        last, n = one.at_longest, one.lengths[-2]
        found.append((last.value, f"{one.backend} {interval_text(last)} at {axis_text(axis, n)}"))
    if len(found) > MOST_NAMED:
        found.sort()
        return f"the exponent of time is lowest for {found[0][1]}, highest for {found[-1][1]}"
    return f"exponent of time: {'; '.join(text for _, text in found)}"


# ---- bytes at lengths that were not tried --------------------------------------------------------


def _needs(over_n: Sequence[Group]) -> Iterator[Block]:
    lines: list[Need] = []
    left_out = []
    for group in over_n:
        for backend in backends(group.rows):
            columns = {"measured": "peak_bytes", "formula": "predicted_peak_bytes"}
            found = {how: bytes_over_n(group.rows, backend, of) for how, of in columns.items()}
            exact = [(one, how) for how, one in found.items() if one is not None and one.exact]
            lines += [(group, backend, *one) for one in exact[:1]]
            if not exact and (measured := found["measured"]) is not None and measured.off:
                left_out.append(backend)
    if lines:
        yield note(
            "Peak bytes are exact, so the polynomial is solved, not fitted, from the three longest"
            " lengths; all others must agree to the byte. At a short length the peak may be at"
            " another point of the call."
        )
        yield table_of(
            "Peak bytes of a call at lengths that were not tried, in addition to its inputs",
            lines,
            {
                "problem": lambda line: line[0].label or "all",
                "backend": lambda line: line[1],
                "peak bytes": lambda line: Number(f"{line[2]} B"),
                "solved from": lambda line: line[3],
                "agree to the byte": lambda line: _checked(line[2]),
                **{_at(n): partial(_size, n) for n in LONG},
            },
        )
    if left_out:
        names = list_text(list(dict.fromkeys(left_out)))
        yield note(f"Peak bytes that are not such a polynomial: {names}.")


def _checked(of: Polynomial) -> str:
    if not of.off:
        return f"all {len(of.agrees) + len(of.solved)} lengths"
    others = list_text([count_text(n) for n, _ in of.off])
    return f"from N = {count_text(of.holds_from)} on; not {others}"


def _size(n: int, line: Need) -> str:
    group, backend, of, _ = line
    row = next((row for row in group.of_backend(backend) if row["seq_len"] == n), {})
    for column, how in (("peak_bytes", ", measured"), ("predicted_peak_bytes", ", predicted")):
        if row.get(column) is not None:
            return Number(bytes_text(row[column]) + how)
    return Number(bytes_text(float(of.at(n))))


def _at(n: int) -> str:
    return f"at N = {length_text(n) if n == LONG[0] else count_text(n)}"
