"""The roofline model (Williams et al. 2009) with measured peaks.

Intensity is work_flops / minimal_bytes, as if every byte were moved once. A backend that writes its
scores moves many more bytes, so no backend's own intensity is higher: the limit "memory" is
certain, and "compute" is the best case.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan

from ...harness.stats.intervals import Interval
from ..data.peaks import Peaks, peaks
from ..data.row_groups import Row
from ..data.run_meta import Meta


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A case in the roofline; `share` of what is attainable at its intensity, None if unknown."""

    row: Row
    intensity: float
    achieved_flops_per_s: Interval
    peaks: Peaks | None
    share: Interval | None

    @property
    def bound(self) -> str:
        if self.peaks is None:
            return ""
        return "memory" if self.intensity < self.peaks.ridge else "compute"


def places(rows: Sequence[Row], meta: Meta) -> list[Place]:
    """Every timed case whose work and minimal traffic are known."""
    found = []
    for row in rows:
        if row.get("achieved_flops_per_s") and row.get("work_flops") and row.get("minimal_bytes"):
            intensity = row["work_flops"] / row["minimal_bytes"]
            known = peaks(meta[row["run"]], row["dtype"])
            rate = _achieved(row)
            share = _share(rate, known.attainable(intensity)) if known else None
            found.append(
                Place(
                    row=row,
                    intensity=intensity,
                    achieved_flops_per_s=rate,
                    peaks=known,
                    share=share,
                )
            )
    return found


def _achieved(row: Row) -> Interval:
    """The work over the latency and over the bounds of its interval."""
    low, high = row.get("latency_high_ms"), row.get("latency_low_ms")
    bounds = [row["work_flops"] / bound * 1e3 if bound else nan for bound in (low, high)]
    return Interval(
        value=row["achieved_flops_per_s"],
        low=bounds[0],
        high=bounds[1],
        units=row.get("processes") or 0,
    )


def _share(rate: Interval, limit: float) -> Interval:
    return replace(rate, value=rate.value / limit, low=rate.low / limit, high=rate.high / limit)
