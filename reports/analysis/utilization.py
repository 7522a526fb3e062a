"""What a device did while a case ran: a value per quantity, with its interval over the windows."""

from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any, NamedTuple, TypeGuard

from ...harness.stats.intervals import Interval, mean_interval
from ..data.row_groups import Row, backends
from ..formatting import beyond_text, bytes_text, number_text, time_text, whole_text

Window = Mapping[str, Any]
BOOKKEEPING = ("process", "way", "window_s", "calls")  # columns of a window that no probe measured


class Quantity(NamedTuple):
    """A headline quantity of the windows; `column` is the column it is computed from."""

    title: str
    column: str
    unit: str = "share"
    per: str = ""  # the column that it is divided by


QUANTITIES: dict[str, Quantity] = {
    "sm_active": Quantity("SMs active", "sm_active_ratio"),
    "sm_occupancy": Quantity("occupancy", "sm_occupancy_ratio"),
    "any_tensor": Quantity("tensor cores", "any_tensor_ratio"),
    "dram": Quantity("memory bandwidth", "dram_bandwidth_ratio"),
    "busy": Quantity("kernels run", "kernel_busy_ratio"),
    "host": Quantity("threads busy", "host_cpu_ratio"),
    "power": Quantity("power", "power_w", "W"),
    "energy": Quantity("energy per call", "energy_j", "J", per="calls"),
    "clock": Quantity("SM clock", "sm_clock_mhz", "MHz"),
    "temperature": Quantity("temperature", "temperature_c", "°C"),
    "rate": Quantity("calls per second", "calls", "", per="window_s"),
}
HEADLINES = {  # utilization tier: its headline quantity, as part of a sentence; `derived` has none
    "gpm": ("sm_active", "the SMs active for"),
    "busy": ("busy", "some kernel running for"),
    "host": ("host", "the host's threads busy for"),
}
OF = {"host": "for torch's threads alone"}  # what has 100 % of a headline quantity, if not all
STATED_RATIO = 1.2  # a larger ratio of the highest to the lowest value is worth a sentence


def windows(row: Row, way: str = "eager") -> list[Window]:
    return [window for window in row.get("windows") or [] if window["way"] == way]


def launch_modes(rows: Iterable[Row]) -> list[str]:
    """`eager`, `graph`: the ways in which the windows of these rows launched their calls."""
    return list(dict.fromkeys(window["way"] for row in rows for window in row.get("windows") or []))


def observed(row: Row, name: str, way: str = "eager") -> Interval | None:
    """A headline quantity of one case; None if no window has it."""
    of = QUANTITIES[name]
    known = [window for window in windows(row, way) if _is_number(window.get(of.column))]
    values = [window[of.column] / (window[of.per] if of.per else 1) for window in known]
    return mean_interval(values, "window") if values else None


def observed_names(rows: Iterable[Row], way: str = "eager") -> list[str]:
    """The headline quantities that at least one of the rows has, in order."""
    every = list(rows)
    return [name for name in QUANTITIES if any(observed(row, name, way) for row in every)]


def missing(rows: Iterable[Row]) -> dict[str, list[str]]:
    """Why columns are missing: reason -> their names, each once."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        for name, reason in (row.get("missing") or {}).items():
            found.setdefault(reason, {})[name] = None
    return {reason: list(names) for reason, names in found.items()}


def finding(rows: list[Row]) -> str:
    """Which backend keeps the device busiest, and energy per call; "" without two to compare."""
    parts = []
    tiers = {row.get("utilization_tier") for row in rows}
    headline = HEADLINES.get(next(iter(tiers)) or "") if len(tiers) == 1 else None
    if headline:
        parts += _extremes(rows, *headline)
    energy = {
        row["backend"]: found.value
        for row in rows
        if (found := observed(row, "energy")) is not None
    }
    if len(backends(rows)) > 1 and len(energy) > 1:
        high, low = _highest_and_lowest(energy)
        ratio = energy[high] / energy[low]
        if ratio < STATED_RATIO:
            parts.append(f"a call takes {energy[low]:.3g} J or little more with each")
        else:
            parts.append(f"a call of {high} takes {ratio:.2g} times the energy of one of {low}")
    return "; ".join(parts)


def _extremes(rows: list[Row], name: str, title: str) -> list[str]:
    known = ((row["backend"], observed(row, name)) for row in rows)
    shares = {backend: found.value for backend, found in known if found is not None}
    if len(shares) < 2:
        return []
    high, low = _highest_and_lowest(shares)
    most, least = (
        f"{100 * share:.0f} %{beyond_text(share, OF.get(name, ''))}"
        for share in (shares[high], shares[low])
    )
    if shares[high] < STATED_RATIO * shares[low]:
        return [f"all keep {title} {' to '.join(dict.fromkeys((least, most)))} of the time"]
    return [f"{high} keeps {title} {most} of the time, {low} {least}"]


def _highest_and_lowest(values: Mapping[str, float]) -> tuple[str, str]:
    return max(values, key=lambda name: values[name]), min(values, key=lambda name: values[name])


def _is_number(value: Any) -> TypeGuard[float]:
    return type(value) in (int, float)


def half_width(interval: Interval) -> float | None:
    """None without an interval."""
    return (interval.high - interval.low) / 2 if isfinite(interval.low) else None


# ---- every other column, whichever probe wrote it ------------------------------------------------


class Ending(NamedTuple):
    """How columns with this ending of their name are written."""

    unit: str
    text: Callable[[float], str] = number_text
    scale: float = 1


ENDINGS = {
    "_ratio": Ending(" %", scale=100),
    "_bytes": Ending("", bytes_text),
    "_mhz": Ending(" MHz"),
    "_ms": Ending("", time_text),
    "_s": Ending("", time_text, scale=1000),
    "_w": Ending(" W"),
    "_j": Ending(" J"),
    "_c": Ending(" °C"),
    "_count": Ending("", whole_text),
    "_mask": Ending("", lambda value: f"0x{int(value):x}"),
}


ACRONYMS = {word.lower(): word for word in ("SM", "GPU", "CPU", "DRAM", "HMMA", "NVLink", "PCIe")}


class Reading(NamedTuple):
    """One column over the windows of a case, as text.

    `span`: the lowest and the highest value, or all values of a bit mask, which has no mean.
    """

    title: str
    mean: str
    span: str
    windows: int

    @property
    def cells(self) -> tuple[str, str, str, str]:
        return self.title, self.mean, self.span, str(self.windows)


def other_readings(row: Row, way: str = "eager") -> list[Reading]:
    """Every number that no headline quantity shows.

    Numbers of probes with calls of their own count as one window of eager calls.
    """
    own_calls = [row.get("tables") or {}] if way == "eager" else []
    values: dict[str, list[float]] = {}
    for window in (*windows(row, way), *own_calls):
        for name, value in window.items():
            if _is_number(value):
                values.setdefault(name, []).append(value)
    shown = {*BOOKKEEPING, *(quantity.column for quantity in QUANTITIES.values())}
    return [_reading(name, found) for name, found in values.items() if name not in shown]


def column_title(name: str) -> str:
    """`SM clock` for sm_clock_mhz."""
    ending = next((ending for ending in ENDINGS if name.endswith(ending)), "")
    kept = name if ending in ("_count", "_mask") else name.removesuffix(ending)
    return " ".join(ACRONYMS.get(word, word) for word in kept.split("_"))


def _reading(name: str, values: list[float]) -> Reading:
    key = next((ending for ending in ENDINGS if name.endswith(ending)), "")
    ending = ENDINGS.get(key, Ending(""))

    def text(value: float) -> str:
        beyond = beyond_text(value) if ending.unit == " %" else ""
        return f"{ending.text(value * ending.scale)}{ending.unit}{beyond}"

    if key == "_mask":
        return Reading(
            column_title(name), "", ", ".join(map(text, sorted(set(values)))), len(values)
        )
    found = mean_interval(values, "window")
    half = half_width(found)
    mean = text(found.value) + (f" ± {text(half)}" if half is not None else "")
    ends = dict.fromkeys((text(min(values)), text(max(values))))
    return Reading(column_title(name), mean, " to ".join(ends), len(values))
