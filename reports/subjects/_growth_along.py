"""How time and bytes grow along any size: N, the cache, the batch, widths; from two values on.

growth.py fits a formula where there are enough lengths. Here are the ratio from the smallest to the
largest value, and the exponent that it amounts to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, log, nan
from typing import Any

from ...harness.stats.intervals import Interval
from ..contrasts import asks_for
from ..data.exactness import baseline
from ..data.row_groups import Group, Row, axis_text, axis_title, backends, groups, value_text
from ..data.run_meta import Meta
from ..formatting import number_text, ratio_bounds_text
from ..growth_fit import EXPONENT_MARGIN, interval_text, slope
from ..ratio import Ratio, time_ratio
from ..words import DISTURBED

SIZES = ("seq_len", "kv_seq_len", "d_model", "batch", "d_k")
NAMES = {0.0: "constant", 1.0: "linear", 2.0: "quadratic"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Along:
    """One backend on one problem, timed at two or more values of an axis, smallest first.

    `time`: largest over smallest. `exponent`: of the power with the same ratio, NaN bounds without
    an interval. `bytes_exponent`: the same of its peak, NaN if that is not known.
    """

    axis: str
    backend: str
    rows: Sequence[Row]
    time: Ratio
    exponent: Interval
    bytes_exponent: float

    @property
    def first(self) -> int:
        return int(self.rows[0][self.axis])

    @property
    def last(self) -> int:
        return int(self.rows[-1][self.axis])

    @property
    def name(self) -> str:
        """`linear`, `less than linear`; "" if the interval does not decide.

        Nor do times that other work disturbed: it slows long calls down more than short ones.
        """
        if self.time.disturbed:
            return ""
        low, high = self.exponent.low, self.exponent.high
        for power, name in NAMES.items():
            if power - EXPONENT_MARGIN <= low and high <= power + EXPONENT_MARGIN:
                return name
        if high < 1 - EXPONENT_MARGIN:
            return "less than linear"
        return "more than linear" if low > 1 + EXPONENT_MARGIN else ""


def growth_along(rows: Sequence[Row], axis: str) -> list[tuple[Group, list[Along]]]:
    """Every problem on which some backend was timed at two values or more."""
    found: list[tuple[Group, list[Along]]] = []
    if len({row.get(axis) for row in rows}) < 2:
        return found
    for group in groups(rows, axis):
        if some := [one for name in backends(group.rows) if (one := _along(group, name, axis))]:
            found.append((group, some))
    return found


def _along(group: Group, backend: str, axis: str) -> Along | None:
    timed = _timed(group, backend, axis)
    mine = [timed[value] for value in sorted(timed)]
    if len(mine) < 2:
        return None
    ratio, exponent = time_ratio(mine[-1], mine[0]), slope(mine[0], mine[-1], axis)
    if ratio is None or exponent is None:
        return None
    return Along(
        axis=axis,
        backend=backend,
        rows=mine,
        time=ratio,
        exponent=exponent,
        bytes_exponent=_bytes_exponent(mine, axis),
    )


def _timed(group: Group, backend: str, axis: str) -> dict[int, Row]:
    return {
        row[axis]: row
        for row in group.rows
        if row["backend"] == backend and row.get("latency_ms") is not None
    }


def _bytes_exponent(rows: Sequence[Row], axis: str) -> float:
    first, last = (row.get("peak_bytes") for row in (rows[0], rows[-1]))
    return log(last / first) / log(rows[-1][axis] / rows[0][axis]) if first and last else nan


def length_axis(rows: Sequence[Row]) -> str:
    """The size that these rows are about: the first of SIZES along which something was timed."""
    return next(
        (
            axis
            for axis in SIZES
            for group in groups(rows, axis)
            if any(len(_timed(group, name, axis)) > 1 for name in backends(group.rows))
        ),
        "",
    )


def main_axis(rows: Sequence[Row], run: Mapping[str, Any]) -> str:
    """The size other than N that a run is about; "" if it varies N, or contrasts that size."""
    axis = length_axis(rows)
    return "" if axis == SIZES[0] or asks_for(run, axis) else axis


def findings(rows: Sequence[Row], meta: Meta) -> list[str]:
    """A sentence on the leading backend per run that is about another size than N."""
    texts = []
    for name, run in meta.items():
        mine = [row for row in rows if row["run"] == name]
        if axis := main_axis(mine, run):
            lead = baseline(run, mine) or ""
            texts.append(joint_finding(growth_along(mine, axis), lead))
    return texts


def finding(group: Group, some: Sequence[Along], lead: str = "") -> str:
    """One sentence on the leading backend of one problem, or on every one."""
    return joint_finding([(group, some)], lead)


def joint_finding(found: Sequence[tuple[Group, Sequence[Along]]], lead: str = "") -> str:
    """One sentence on several problems.

    `time grows as N_kv^x from N_kv = 512 to 8k: for h_kv = 32, sdpa x = 1.02 (0.98 to 1.05), linear
    (16.9 times, 15.2 to 18.3); for h_kv = 8, ...; unpaired`.
    """
    shown = [(group, _of_lead(some, lead)) for group, some in found]
    every = [one for _, some in shown for one in some]
    several = len({(one.first, one.last) for one in every}) > 1
    parts = [
        (f"for {group.label}, " if group.label else "")
        + "; ".join(_text(one, span=f" from {_span(one)}" if several else "") for one in some)
        for group, some in shown
    ]
    span = "" if several else f" from {_span(every[0])}"
    unpaired = "" if all(one.time.paired for one in every) else "; unpaired"
    return f"time grows as {axis_title(every[0].axis)}^x{span}: {'; '.join(parts)}{unpaired}"


def _of_lead(some: Sequence[Along], lead: str) -> list[Along]:
    return [one for one in some if one.backend == lead] or list(some)


def _span(one: Along) -> str:
    return f"{axis_text(one.axis, one.first)} to {value_text(one.axis, one.last)}"


def _text(one: Along, *, span: str) -> str:
    times = number_text(one.time.value)
    bounds = ratio_bounds_text(one.time.low, one.time.high)
    exponent = interval_text(one.exponent) + ("" if isfinite(one.exponent.low) else ", no interval")
    name = f", {one.name}" if one.name else ""
    of = ", ".join(filter(None, (f"{times} times", bounds)))
    noise = DISTURBED if one.time.disturbed else ""
    return f"{one.backend} x = {exponent}{name}{span} ({of}){noise}"
