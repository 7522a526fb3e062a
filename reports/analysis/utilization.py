"""What a device did while a case ran, from the windows of its row: a value per quantity, with its
interval over the windows.
"""

from collections.abc import Callable, Iterable, Mapping
from math import isfinite, isnan
from typing import Any, NamedTuple

from ...harness.stats import Interval, mean_interval
from ..data.row_groups import Row, backends

Window = Mapping[str, Any]


class Quantity(NamedTuple):
    """Something that windows tell: its short title, its meaning for a reader, and its value in one
    window.
    """

    title: str
    meaning: str
    of: Callable[[Window], float | None]
    unit: str = "share"


def per_call(name: str) -> Callable[[Window], float | None]:
    return lambda window: None if window.get(name) is None else window[name] / window["calls"]


def plainly(name: str) -> Callable[[Window], float | None]:
    return lambda window: window.get(name)


QUANTITIES: dict[str, Quantity] = {
    "sm_active": Quantity(
        "SMs active",
        "cycles in which an SM had work, over all cycles of all SMs",
        plainly("sm_active_ratio"),
    ),
    "sm_occupancy": Quantity(
        "occupancy", "warps resident, over the most that fit", plainly("sm_occupancy_ratio")
    ),
    "any_tensor": Quantity(
        "tensor cores", "cycles in which a tensor core worked", plainly("any_tensor_ratio")
    ),
    "dram": Quantity(
        "memory bandwidth",
        "of the device memory's highest bandwidth",
        plainly("dram_bandwidth_ratio"),
    ),
    "busy": Quantity(
        "kernels run",
        "time in which at least one kernel ran, however small",
        plainly("kernel_busy_ratio"),
    ),
    "host": Quantity(
        "threads busy",
        "CPU time of the process, over the time of its threads",
        plainly("host_cpu_ratio"),
    ),
    "power": Quantity("power", "mean of the whole board", plainly("power_w"), "W"),
    "energy": Quantity("energy per call", "of the whole board", per_call("energy_j"), "J"),
    "clock": Quantity(
        "SM clock", "at the end of the windows, under load", plainly("sm_clock_mhz"), "MHz"
    ),
    "temperature": Quantity(
        "temperature", "at the end of the windows", plainly("temperature_c"), "°C"
    ),
    "rate": Quantity(
        "calls per second",
        "in the steady loop",
        lambda window: window["calls"] / window["window_s"],
        "",
    ),
}
NAMED = {"gpm": "sm_active", "busy": "busy", "host": "host"}
"""The quantity that a tier is named after; tier derived has none in its windows."""
STATED_RATIO = (
    1.2  # of the highest to the lowest share, from which a difference is worth a sentence
)


def windows(row: Row, way: str = "eager") -> list[Window]:
    return [window for window in row.get("windows") or [] if window["way"] == way]


def ways(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(window["way"] for row in rows for window in row.get("windows") or []))


def seen(row: Row, name: str, way: str = "eager") -> Interval | None:
    """One quantity of one case; None where no window has it."""
    values = [QUANTITIES[name].of(window) for window in windows(row, way)]
    known = [value for value in values if value is not None]
    return mean_interval(known, "window") if known else None


def told(rows: Iterable[Row], way: str = "eager") -> list[str]:
    """The quantities that at least one of the rows has, in their order."""
    many = list(rows)
    return [name for name in QUANTITIES if any(seen(row, name, way) is not None for row in many)]


def missing(rows: Iterable[Row]) -> dict[str, list[str]]:
    """Why columns are missing: reason -> their names, each once."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        for name, reason in (row.get("missing") or {}).items():
            found.setdefault(reason, {})[name] = None
    return {reason: list(names) for reason, names in found.items()}


def finding(rows: list[Row]) -> str:
    """Who keeps the device busiest, and what a call costs in energy, in a sentence; "" where no two
    can be compared.
    """
    parts = []
    tiers = {row.get("utilization_tier") for row in rows}
    name = NAMED.get(next(iter(tiers)) or "") if len(tiers) == 1 else None
    if name:
        parts += _extremes(rows, name, "{high} keeps {title} {most}, {low} {least}")
    energy = {row["backend"]: found for row in rows if (found := seen(row, "energy")) is not None}
    if len(backends(rows)) > 1 and len(energy) > 1:
        high, low = (
            max(energy, key=lambda b: energy[b].value),
            min(energy, key=lambda b: energy[b].value),
        )
        ratio = energy[high].value / energy[low].value
        alike = f"a call takes {energy[low].value:.3g} J or little more with each"
        parts.append(
            alike
            if ratio < STATED_RATIO
            else f"a call of {high} takes {ratio:.2g} times the energy of one of {low}"
        )
    return "; ".join(parts)


def _extremes(rows: list[Row], name: str, words: str) -> list[str]:
    shares = {row["backend"]: found.value for row in rows if (found := seen(row, name)) is not None}
    if len(shares) < 2:
        return []
    high, low = max(shares, key=lambda b: shares[b]), min(shares, key=lambda b: shares[b])
    title = {
        "sm_active": "the SMs active for",
        "busy": "some kernel running for",
        "host": "the host's threads busy for",
    }[name]
    if shares[high] < STATED_RATIO * shares[low]:
        span = list(dict.fromkeys((f"{shares[low]:.0%}", f"{shares[high]:.0%}")))
        return [f"all keep {title} {' to '.join(span)} of the time"]
    return [
        words.format(
            high=high,
            low=low,
            title=title,
            most=f"{shares[high]:.0%} of the time",
            least=f"{shares[low]:.0%}",
        )
    ]


def half_width(interval: Interval) -> float:
    """NaN where there is none."""
    return (interval.high - interval.low) / 2 if isfinite(interval.low) else float("nan")


def exact(interval: Interval) -> bool:
    return not isnan(half_width(interval))
