"""The device's peaks, as `attnbench doctor --deep` measured them before the run, and where a
case is below them: the roofline model (Williams et al. 2009).

Intensity is work_flops / minimal_bytes, as if every byte were moved once. A backend that writes its
scores moves many more bytes, so no backend's own intensity is higher: the limit "memory" is
certain, and "compute" is the best case.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Any

from ...harness.files.printable import visible
from ...harness.stats.intervals import Interval
from .row_groups import Row
from .run_meta import Meta, finite_number

MOST_CHARACTERS = 200
COPY = "copy_bytes_per_s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """Of matrix products in one dtype, and of copying memory."""

    flops_per_s: float
    bytes_per_s: float

    @property
    def ridge(self) -> float:
        """FLOPs per byte above which arithmetic is the limit."""
        return self.flops_per_s / self.bytes_per_s

    def attainable(self, intensity: float) -> float:
        return min(self.flops_per_s, intensity * self.bytes_per_s)


def peaks(run: Mapping[str, Any], dtype: str) -> Peaks | None:
    """Of this run's device and dtype; None if they were not measured."""
    flops_per_s = _measured(run, f"gemm_{dtype}_flops_per_s")
    bytes_per_s = memory_bytes_per_s(run)
    if flops_per_s is None or bytes_per_s is None:
        return None
    return Peaks(flops_per_s=flops_per_s, bytes_per_s=bytes_per_s)


def memory_bytes_per_s(run: Mapping[str, Any]) -> float | None:
    """The bandwidth of this run's device: of a copy, bytes read and bytes written."""
    return _measured(run, COPY)


def is_calibrated(run: Mapping[str, Any]) -> bool:
    calibration = run.get("calibration")
    return isinstance(calibration, dict) and isinstance(calibration.get("peaks"), dict)


def memory_doubt(run: Mapping[str, Any]) -> str:
    """Why calibration itself doubts that bandwidth; "" if it does not."""
    checks = run["calibration"].get("checks") if is_calibrated(run) else None
    for check in checks if isinstance(checks, list) else ():
        if not isinstance(check, dict) or check.get("verdict") != "off":
            continue
        if str(check.get("name")).startswith(COPY):
            reason = visible(str(check.get("reason")))[:MOST_CHARACTERS]
            return f"calibration doubts the copy that it timed ({reason})"
    return ""


def _measured(run: Mapping[str, Any], name: str) -> float | None:
    """None also for what is no rate: the file may be anyone's."""
    if not is_calibrated(run):
        return None
    found = finite_number(run["calibration"]["peaks"], name)
    return found if found is not None and found > 0 else None


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
            value, low, high = (row.get(f"latency_{end}ms") or nan for end in ("", "low_", "high_"))
            units = row.get("processes") or 0
            latency_ms = Interval(value=value, low=low, high=high, units=units)
            rate = per_second(row["work_flops"], latency_ms)
            share = share_of(rate, known.attainable(intensity)) if known else None
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


def per_second(amount: float, latency_ms: Interval) -> Interval:
    """An amount over a latency, and over the bounds of its interval; NaN where one is 0."""
    value, low, high = (
        amount / bound * 1e3 if bound else nan
        for bound in (latency_ms.value, latency_ms.high, latency_ms.low)
    )
    return replace(latency_ms, value=value, low=low, high=high)


def share_of(rate: Interval, limit: float) -> Interval:
    return replace(rate, value=rate.value / limit, low=rate.low / limit, high=rate.high / limit)
