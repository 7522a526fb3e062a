"""The device's peaks, as `attnbench doctor --deep` measured them before the run, and where a
case is below them: the roofline model (Williams et al. 2009).

Intensity is work_flops / minimal_bytes, as if every byte were moved once. A backend that writes its
scores moves many more bytes, so no backend's own intensity is higher: the limit "memory" is
certain, and "compute" is the best case.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan
from typing import Any

from ...harness.files.printable import visible
from ...harness.stats.intervals import Interval
from ..formatting import beyond_whole, number_text, size_text
from ..quantity import Quantity
from .exactness import is_exact
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


# ---- a decode step -------------------------------------------------------------------------------


MOST_QUERIES = 16  # of a sequence: one token, or drafted ones that are verified in one step
FEWEST_KEYS = 16  # per query
NEXT = "; "  # between the notes of a case
COMMAND = "attnbench doctor --deep"
NOT_MEASURED = f"no memory bandwidth was measured on this device before the run: {COMMAND}"
NO_COPY = f"calibration could not measure copying: {COMMAND} says why"
INEXACT = "not exact attention, so what it must read is not known"
NO_BYTES = "the row does not say how many bytes must be moved"
FASTER_READING = "reading is faster than the copy that calibration timed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What a decode step must move, and how fast its device moves memory.

    `needed_bytes` and `memory_bytes_per_s` (a copy, as calibrated) are None if they are not known.
    `fits_in_cache`: of a CPU; None on a GPU, or if the run does not know the size of its caches.
    `notes`: why, and what else limits the share. `beyond`: how it can exceed 100 %.
    """

    needed_bytes: int | None
    memory_bytes_per_s: float | None
    fits_in_cache: bool | None = None
    notes: tuple[str, ...] = ()
    beyond: str = ""

    def rate(self, latency_ms: Interval) -> "Rate":
        """The bytes over a latency, and over the bounds of its interval."""
        return Rate(traffic=self, bytes_per_s=per_second(self.needed_bytes or nan, latency_ms))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Bytes per second of what had to be moved; NaN without bytes or latency."""

    traffic: Traffic
    bytes_per_s: Interval

    @property
    def share(self) -> Interval | None:
        """Of the measured bandwidth; None if either is not known."""
        rate, whole = self.bytes_per_s, self.traffic.memory_bytes_per_s
        if whole is None or not isfinite(rate.value):
            return None
        return share_of(rate, whole)

    @property
    def share_text(self) -> str:
        """`61.0 % (58.2 to 63.9)`; "" without a measured bandwidth."""
        return "" if self.share is None else str(Quantity.of(self.share, "share"))

    @property
    def rate_text(self) -> str:
        """`9.80 GB/s (9.41 GB/s to 10.2 GB/s)`; "" without a rate."""
        return str(Quantity.of(self.bytes_per_s, "bytes_per_s"))

    @property
    def notes(self) -> tuple[str, ...]:
        """Why a number is missing, and what limits the others."""
        share = self.share
        is_beyond = share is not None and beyond_whole(share.value)
        beyond = (self.traffic.beyond,) if is_beyond and self.traffic.beyond else ()
        return (*self.traffic.notes, *beyond)

    @property
    def note(self) -> str:
        """As a column of the table has them."""
        return NEXT.join(self.notes)


def is_decode(row: Mapping[str, Any]) -> bool:
    """Whether a case is a decode step: a forward pass of few queries over many keys.

    A layer is none: it projects every key and value, which a decoder does once and keeps.
    """
    queries, keys = row.get("seq_len"), row.get("kv_seq_len")
    return (
        row.get("passes") == "forward"
        and row.get("scope") == "core"
        and isinstance(queries, int)
        and isinstance(keys, int)
        and 1 <= queries <= MOST_QUERIES
        and keys >= FEWEST_KEYS * queries
    )


def traffic(row: Mapping[str, Any], run: Mapping[str, Any]) -> Traffic | None:
    """Of a row with run.json of its run; None if the case is no decode step."""
    if not is_decode(row):
        return None
    if not is_exact(row) or not row.get("minimal_bytes"):
        why = NO_BYTES if is_exact(row) else INEXACT
        return Traffic(needed_bytes=None, memory_bytes_per_s=None, notes=(why,))
    measured = memory_bytes_per_s(run)
    needed_bytes, cached = row["minimal_bytes"], _fits_in_cache(row, run)
    notes = (
        "" if measured else NO_COPY if is_calibrated(run) else NOT_MEASURED,
        memory_doubt(run) if measured else "",
        f"the data fit in the CPU's{_cache(row, run)}, so"
        f" {'more than 100 % is possible' if measured else 'this is no rate of memory'}"
        if cached
        else "",
        _limited_by_arithmetic(row, run),
    )
    return Traffic(
        needed_bytes=needed_bytes,
        memory_bytes_per_s=measured,
        notes=tuple(filter(None, notes)),
        fits_in_cache=cached,
        beyond="" if cached else f"above 100 %: {_why_beyond(row, run)}",
    )


def _fits_in_cache(row: Mapping[str, Any], run: Mapping[str, Any]) -> bool | None:
    """On a CPU only: a GPU's L2 is flushed before every call that counts. Of copies that take turns
    all together count.
    """
    cache_bytes, copies = _cpu_cache_bytes(row, run), row.get("kv_copies") or 1
    return None if cache_bytes is None else bool(copies * row["minimal_bytes"] <= cache_bytes)


def _cpu_cache_bytes(row: Mapping[str, Any], run: Mapping[str, Any]) -> float | None:
    """None on a GPU, and in runs that did not look for it."""
    environment = run.get("environment")
    if row.get("device") != "cpu" or not isinstance(environment, dict):
        return None
    return finite_number(environment, "cpu_cache_bytes")


def _limited_by_arithmetic(row: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    """Many queries per key, as many heads share it: by the roofline, memory is no limit then."""
    known = peaks(run, str(row.get("dtype")))
    if known is None or not row.get("work_flops"):
        return ""
    intensity = row["work_flops"] / row["minimal_bytes"]
    if intensity < known.ridge:
        return ""
    return (
        f"arithmetic is the limit at {number_text(intensity)} FLOP per byte, memory only below"
        f" {number_text(known.ridge)}"
    )


def _why_beyond(row: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    if row.get("device") != "cpu":
        return FASTER_READING
    return f"some of the data came from the CPU's{_cache(row, run)}, or {FASTER_READING}"


def _cache(row: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    """` cache of 32 MiB`."""
    cache_bytes = _cpu_cache_bytes(row, run)
    return " cache" if cache_bytes is None else f" cache of {size_text(cache_bytes)}"
