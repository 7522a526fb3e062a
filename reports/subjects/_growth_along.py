"""How time and bytes grow along any size: N, the cache, the batch, widths; from two values on.

A formula is fitted where there are enough lengths. Here are the ratio from the smallest to the
largest value, and the exponent that it amounts to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, log, nan
from typing import Any

from ...harness.stats.intervals import Interval
from ..contrasts import asks_for
from ..data.row_groups import Group, Row, axis_text, axis_title, backends, groups, value_text
from ..formatting import number_text, ratio_bounds_text
from ..growth_fit import EXPONENT_MARGIN, interval_text, power
from ..judging.pair import time_ratio
from ..judging.ratio import Ratio
from ..words import DISTURBED

SIZES = ("seq_len", "kv_seq_len", "d_model", "batch", "d_k")
POWERS = {0.0: "constant", 1.0: "linear", 2.0: "quadratic"}


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

    def text(self, *, with_span: bool) -> str:
        bounds = ratio_bounds_text(self.time.low, self.time.high)
        exponent = interval_text(self.exponent)
        exponent += "" if isfinite(self.exponent.low) else ", no interval"
        name = f", {self.name}" if self.name else ""
        span = f" from {self.span}" if with_span else ""
        of = ", ".join(filter(None, (f"{number_text(self.time.value)} times", bounds)))
        noise = DISTURBED if self.time.disturbed else ""
        return f"{self.backend} x = {exponent}{name}{span} ({of}){noise}"

    @property
    def span(self) -> str:
        return f"{axis_text(self.axis, self.first)} to {value_text(self.axis, self.last)}"


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


def main_axis(rows: Sequence[Row], run: Mapping[str, Any]) -> str:
    """The size other than N that a run is about: the first of SIZES along which something was
    timed; "" if that is N, or a size that the run contrasts.
    """
    axis = next((axis for axis in SIZES if growth_along(rows, axis)), "")
    return "" if axis == SIZES[0] or asks_for(run, axis) else axis


def joint_finding(found: Sequence[tuple[Group, Sequence[Along]]], lead: str = "") -> str:
    """One sentence on several problems, on one backend or on every one.

    `time grows as N_kv^x from N_kv = 512 to 8k: for h_kv = 32, sdpa x = 1.02 (0.98 to 1.05), linear
    (16.9 times, 15.2 to 18.3); for h_kv = 8, ...; unpaired`.
    """
    shown = [
        (group, [one for one in some if one.backend == lead] or list(some)) for group, some in found
    ]
    every = [one for _, some in shown for one in some]
    several = len({(one.first, one.last) for one in every}) > 1
    parts = [
        (f"for {group.label}, " if group.label else "")
        + "; ".join(one.text(with_span=several) for one in some)
        for group, some in shown
    ]
    span = "" if several else f" from {every[0].span}"
    unpaired = "" if all(one.time.paired for one in every) else "; unpaired"
    return f"time grows as {axis_title(every[0].axis)}^x{span}: {'; '.join(parts)}{unpaired}"
