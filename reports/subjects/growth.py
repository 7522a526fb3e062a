"""How time and bytes grow along any size: exponents, and formulas over N with enough lengths."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import isfinite, log, nan

from ...harness.stats.intervals import Interval
from ..contrasts import asks_for
from ..data.exactness import baseline
from ..data.row_groups import Group, Row, axis_text, axis_title, backends, groups, value_text
from ..data.run_meta import Meta, question
from ..elements import Block, Card, Table, note, table_of
from ..formatting import number_text, time_text
from ..growth_fit import (
    EXPONENT_MARGIN,
    FEWEST_LENGTHS,
    FURTHEST,
    Growth,
    growths,
    interval_text,
    power,
    predict,
)
from ..judging.pair import time_ratio
from ..judging.ratio import Ratio
from ..quantity import Number
from ..words import DISTURBED
from . import Subject, testing_claims
from ._over import MOST_PANELS, challenges, latencies, n_text

TITLE = "Growth"
SECTION = "asked"
APART = True
ORDER = 14
SIZES = ("seq_len", "kv_seq_len", "d_model", "batch", "d_k")
POWERS = {0.0: "constant", 1.0: "linear", 2.0: "quadratic"}
MOST_PROBLEMS = 40
ASKED = "grow"  # in the question of a scenario about growth
POWER = "x is the slope between the ends: 1 is linear, 2 quadratic."
PREDICTED = f"at {FURTHEST} times the longest N"
FORMULA = ("constant", "per 1 000 N", "per (1 000 N)²", PREDICTED)
HOW_TIME = (
    "Exponents are of a power of N between the longest three lengths: 1 is linear, 2 quadratic."
    " The formula a + b N + c N² is fitted to relative errors. Terms may be negative; one whose"
    " interval holds 0 is not shown to be there."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Along:
    """One backend on one problem, timed at two or more values of an axis.

    `first`, `last`: the smallest and the largest. `time`: largest over smallest. `exponent`: of the
    power with the same ratio, NaN bounds without an interval. `bytes_exponent`: the same of its
    peak, NaN if that is not known.
    """

    axis: str
    backend: str
    first: int
    last: int
    time: Ratio
    exponent: Interval
    bytes_exponent: float

    @property
    def name(self) -> str:
        """`linear`, `less than linear`; "" if the interval does not decide.

        Nor do times that other work disturbed: it slows long calls down more than short ones.
        """
        if self.time.disturbed:
            return ""
        low, high = self.exponent.low, self.exponent.high
        for exact, name in POWERS.items():
            if exact - EXPONENT_MARGIN <= low and high <= exact + EXPONENT_MARGIN:
                return name
        if high < 1 - EXPONENT_MARGIN:
            return "less than linear"
        return "more than linear" if low > 1 + EXPONENT_MARGIN else ""

    @property
    def text(self) -> str:
        """`sdpa 1.02 (0.98 to 1.05), linear`."""
        exponent = f"{self.backend} {interval_text(self.exponent)}"
        exponent += "" if isfinite(self.exponent.low) else ", no interval"
        return f"{exponent}{f', {self.name}' if self.name else ''}"

    @property
    def span(self) -> str:
        return f"{axis_text(self.axis, self.first)} to {value_text(self.axis, self.last)}"


Found = Sequence[tuple[Group, Sequence[Along]]]


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card is about the sizes that a scenario varies, if that is what it asks."""
    rows, card = list(rows), _card(list(rows), meta)
    over_n = list(_times(rows))
    sizes = _sizes([growth_along(rows, axis) for axis in (SIZES[1:] if over_n else SIZES)])
    return Subject(
        card=card,
        blocks=(*over_n, *([] if sizes is None else [sizes])),
        lacking=f"Growth needs a problem timed at three lengths, a formula {FEWEST_LENGTHS}.",
    )


def _card(rows: list[Row], meta: Meta) -> Card | None:
    """Of a run that varies several sizes and asks how they grow, a sentence on each. None of N
    alone, where others answer: who fits, who is faster.
    """
    claims = testing_claims(meta)
    for name, run in meta.items():
        mine = [row for row in rows if row["run"] == name]
        along = {axis: growth_along(mine, axis) for axis in SIZES if not asks_for(run, axis)}
        varied = {axis: found for axis, found in along.items() if found}
        if len(varied) > 1 and not claims:
            if ASKED not in question(run).lower():
                continue
            largest = [[max(found, key=lambda one: _work(one[0]))] for found in varied.values()]
            return Card(
                title=TITLE,
                sentence=" ".join(map(joint_finding, largest)),
                picture=_sizes(largest),
                subtitle="time and peak bytes as a power of each size",
                note=POWER,
            )
        first = next(iter(varied), "")
        if first and (first != "seq_len" or (claims and any(map(challenges, mine)))):
            # over N the question is which of them grow
            lead = "" if first == "seq_len" else baseline(run, mine) or ""
            found = varied[first][:MOST_PANELS]
            text = joint_finding(found, lead)
            return Card(
                title=f"Growth with {axis_title(first)}",
                sentence=text,
                picture=latencies([group for group, _ in found], text, meta, axis=first),
                subtitle=f"latency over {axis_title(first)}",
                note=POWER,
            )
    return None


def _work(group: Group) -> float:
    return max(row.get("work_flops") or 0 for row in group.rows)


# ---- along any size ------------------------------------------------------------------------------


def growth_along(rows: Sequence[Row], axis: str) -> list[tuple[Group, list[Along]]]:
    """Every problem on which some backend was timed at two values or more."""
    found: list[tuple[Group, list[Along]]] = []
    if len({row.get(axis) for row in rows}) < 2:
        return found
    for group in groups(rows, axis):
        if some := [one for name in backends(group.rows) if (one := _of(group, name, axis))]:
            found.append((group, some))
    return found


def _of(group: Group, backend: str, axis: str) -> Along | None:
    mine = (row for row in group.rows if row["backend"] == backend)
    timed = {row[axis]: row for row in mine if row.get("latency_ms") is not None}
    if len(timed) < 2:
        return None
    first, last = timed[min(timed)], timed[max(timed)]
    ratio, times = time_ratio(last, first), last[axis] / first[axis]
    if ratio is None:
        return None
    few, many = first.get("peak_bytes"), last.get("peak_bytes")
    return Along(
        axis=axis,
        backend=backend,
        first=first[axis],
        last=last[axis],
        time=ratio,
        exponent=power(ratio, times),
        bytes_exponent=log(many / few) / log(times) if few and many else nan,
    )


def joint_finding(found: Found, lead: str = "") -> str:
    """One sentence on several problems, on one backend or on every one.

    `Time grows as N_kv^x from N_kv = 512 to 8 192: for h_kv = 32, sdpa 1.02 (0.98 to 1.05), linear;
    for h_kv = 8, ...`
    """
    shown = [(group, [one for one in some if one.backend == lead] or some) for group, some in found]
    every = [one for _, some in shown for one in some]
    several = len({(one.first, one.last) for one in every}) > 1
    texts = [
        f"{f'for {group.label}, ' if group.label else ''}"
        + "; ".join(f"{one.text}{f' from {one.span}' if several else ''}" for one in some)
        for group, some in shown
    ]
    span = "" if several else f" from {every[0].span}"
    how = "" if all(one.time.paired for one in every) else "; unpaired"
    how += DISTURBED if any(one.time.disturbed for one in every) else ""
    return f"Time grows as {axis_title(every[0].axis)}^x{span}: {'; '.join(texts)}{how}."


def _sizes(every: Sequence[Found]) -> Table | None:
    """From the smallest to the largest N, cache, width or batch."""
    lines = [(group, one) for found in every for group, some in found for one in some]
    if not lines:
        return None
    return table_of(
        "Growth from the smallest to the largest timed value",
        lines,
        {
            "problem": lambda line: line[0].label,
            "backend": lambda line: line[1].backend,
            "size": lambda line: line[1].span,
            "time ratio": lambda line: line[1].time.marked,
            "time as size^": lambda line: Number(interval_text(line[1].exponent)),
            "bytes as size^": lambda line: line[1].bytes_exponent,
            "word": lambda line: line[1].name or "not decided",
        },
        optional=("problem",),
        folded=True,
        most=MOST_PROBLEMS,
    )


# ---- over N --------------------------------------------------------------------------------------


def _times(rows: list[Row]) -> Iterator[Block]:
    lines = [
        (group.label, one)
        for group, every in islice(growths(rows), MOST_PROBLEMS)
        for one in every
        if any(one.exponents)
    ]
    if lines:
        yield note(HOW_TIME)
        yield table_of(
            "Time over N: exponent, and formula",
            lines,
            {
                "problem": lambda line: line[0],
                "backend": lambda line: line[1].backend,
                "grows as N^": lambda line: Number(interval_text(line[1].at_longest)),
                "constant": lambda line: _term(line[1], line[1].constant_ms, 1),
                "per 1 000 N": lambda line: _term(line[1], line[1].per_token_ms, 1000),
                "per (1 000 N)²": lambda line: _term(line[1], line[1].per_pair_ms, 1_000_000),
                "off by at most": _off,
                PREDICTED: _predicted,
            },
            optional=("problem", *FORMULA),
        )


def _term(of: Growth, found: Interval, times: int) -> str:
    if of.reason:
        return ""
    value, low, high = (_signed(bound * times) for bound in (found.value, found.low, found.high))
    return Number(f"{value} ({low} to {high})" if low else value)


def _signed(ms: float) -> str:
    if not isfinite(ms) or ms == 0:
        return "0" if ms == 0 else ""
    return f"{'−' * (ms < 0)}{time_text(abs(ms))}"


def _off(line: tuple[str, Growth]) -> str:
    one = line[1]
    if one.reason:
        return f"a formula needs {FEWEST_LENGTHS} lengths"
    n, ratio = one.worst
    fits = "" if one.describes else ": does not fit"
    return Number(f"{number_text(100 * (ratio - 1))} % at {n_text(n)}{fits}")


def _predicted(line: tuple[str, Growth]) -> str:
    one = line[1]
    n = FURTHEST * max(one.lengths)
    found = predict(one, n)
    if not isfinite(found.value) or not one.describes:
        return ""
    between = f" ({time_text(found.low)} to {time_text(found.high)})" if isfinite(found.low) else ""
    return Number(f"{time_text(found.value)}{between} at {n_text(n)}")
