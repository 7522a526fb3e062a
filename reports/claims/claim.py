"""A claim: a quantity of some cases, and the range of it that counts as holding.

The verdict comes from the interval: inside the range supports, outside refutes, across does not
decide.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf, isnan, log, nan
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..contrasts import Contrast
from ..data.exactness import is_exact
from ..data.polynomial import FEWEST, bytes_over_n, coefficient_text, flops_over, through
from ..data.row_groups import (
    AXES,
    Row,
    axis_title,
    backends,
    by,
    family,
    groups,
    label,
    problem,
    varying_axes,
)
from ..formatting import in_brackets, length_text, number_text
from ..growth_fit import growths, interval_text
from ..judging.over import cases_of, over
from ..words import DISTURBED

if TYPE_CHECKING:
    import pandas as pd

ClaimVerdict = Literal["supported", "refuted", "depends", "not decided", "not run"]
HIDDEN = ": other costs may hide more; measure a longer or wider case"


class Found(NamedTuple):
    """A quantity of one backend on one problem, with its interval; a count's has no width.

    `column`: what was measured. `doubt`: why it decides nothing, "" if it may. `most`: what it may
    still be beyond the interval, if fixed costs hide it; None if they cannot.
    """

    backend: str
    column: str
    low: float
    high: float
    text: str
    doubt: str = ""
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Criterion:
    """`where`: the cases that it is about, as a query of the frame of cases. `answer` finds the
    `columns` of them; each must be `within` the range.
    """

    quantity: str
    within: tuple[float, float]
    where: str
    answer: Callable[["pd.DataFrame", str], Iterable[Found]]
    columns: Sequence[str]

    def verdict(self, found: Found) -> ClaimVerdict:
        """Bounds that are not known are NaN and decide nothing."""
        low, high = self.within
        if low <= found.low and found.high <= high:
            return "not decided" if found.doubt else "supported"
        most = found.high if found.most is None else found.most
        is_outside = found.low > high or most < low
        return "refuted" if is_outside and not found.doubt else "not decided"

    def text(self, found: Found) -> str:
        is_below = found.high < self.within[0] and self.verdict(found) == "not decided"
        return found.text + (found.doubt or HIDDEN * is_below)

    @property
    def wanted(self) -> str:
        """`bytes over those of one head: 0 to 1.05`."""
        low, high = map(number_text, self.within)
        if low == high:
            return f"{self.quantity}: {low}"
        return f"{self.quantity}: " + (f"{low} to {high}" if high else f"above {low}")


class Claim(NamedTuple):
    name: str
    statement: str
    criterion: Criterion


@dataclass(frozen=True, slots=True)
class Outcome:
    """A claim, and all that was found of it."""

    claim: Claim
    found: Sequence[Found]

    @property
    def verdict(self) -> ClaimVerdict:
        """One column that fails refutes the claim, one that is open or lacks leaves it not
        decided.
        """
        judged = [(one.column, self.claim.criterion.verdict(one)) for one in self.found]
        each = {
            agreed(verdict for of, verdict in judged if of == column)
            for column in self.claim.criterion.columns
        }
        if "refuted" in each or len(each) == 1:
            return "refuted" if "refuted" in each else each.pop()
        return "depends" if "depends" in each else "not decided"

    @property
    def parts(self) -> Iterator[tuple[str, ClaimVerdict, str]]:
        """Whose quantity it is, the verdict there, and the last numbers with that verdict; of many
        problems how many have each.
        """
        for (backend, _), some in by(self.found, lambda one: (one.backend, one.column)).items():
            last = {
                self.claim.criterion.verdict(one): self.claim.criterion.text(one) for one in some
            }
            verdict = agreed(last)
            text = "; ".join(last[one] for one in deciding(verdict) if one in last)
            counts = Counter(map(self.claim.criterion.verdict, some))
            every = ", ".join(f"{count} {one}" for one, count in counts.items())
            yield backend, verdict, text + (f"; in all {every}" if len(some) > 1 else "")


def outcomes(claims: Iterable[Claim], rows: Sequence[Row]) -> list[Outcome]:
    """Those that rows of one device say something of. Only rows of the same run are compared."""
    if not rows:
        return []
    cases = frame_of(rows)
    found = [Outcome(claim, [*_found(claim.criterion, cases)]) for claim in claims]
    return [one for one in found if one.found]


def _found(criterion: Criterion, cases: "pd.DataFrame") -> Iterator[Found]:
    mine = cases.query(criterion.where, engine="python")
    for column in criterion.columns if len(mine) else ():
        yield from criterion.answer(mine, column)


def frame_of(rows: Sequence[Row]) -> "pd.DataFrame":
    """The cases that claims select: their axes and `backend`, `family` (`linformer` of
    `linformer:64`) and whether it is `exact` attention.
    """
    more = {"family": [family(row["backend"]) for row in rows], "exact": [*map(is_exact, rows)]}
    return cases_of(rows, ["backend", *AXES], **more)


def agreed(verdicts: Iterable[ClaimVerdict]) -> ClaimVerdict:
    """Of a general statement, by problems, backends and runs: "depends" if they contradict each
    other, else "refuted" if one refutes it, else "not decided" if one is.
    """
    found = set(verdicts)
    if {"supported", "refuted"} <= found:
        return "depends"
    order: tuple[ClaimVerdict, ...] = ("refuted", "not decided", "supported")
    return next((one for one in order if one in found), "not run")


def deciding(verdict: ClaimVerdict) -> tuple[ClaimVerdict, ...]:
    """The verdicts whose numbers say why it is this one."""
    return ("supported", "refuted") if verdict == "depends" else (verdict,)


# ---- what is measured ----------------------------------------------------------------------------


BUSY = f"{DISTURBED}: measure again on an idle machine"
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
            power, (first, _, last) = found.at_longest, map(length_text, found.lengths[-3:])
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
                text += f" over {symbol} = {length_text(least)} to {length_text(most)}"
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
                doubt = f"; the formula is off by {number_text(off)} times at N = {length_text(n)}"
            elif not is_flat and found.lengths[0] * PAST_CROSSING > by_flops:
                doubt = doubt or f"; too close to the shortest N, {found.lengths[0]}"
            text = f"N^{interval_text(power)} up to N = {length_text(last)}; N² takes over at N = "
            text += f"{interval_text(over) if over else 'none'}, by FLOPs {number_text(by_flops)}"
            yield Found(found.backend, column, low / by_flops, high / by_flops, text, doubt)
