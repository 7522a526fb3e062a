"""The number that stands for the windows of a row, and its words."""

from collections.abc import Iterable, Mapping
from typing import Any

HEADLINES: dict[str, tuple[str, str]] = {
    "gpm": ("sm_active_ratio", "{:.0f} % of the SMs active"),
    "busy": ("kernel_busy_ratio", "kernels run {:.0f} % of the time"),
    "host": ("host_cpu_ratio", "threads busy {:.0f} % of the time"),
}


def utilization_ratio(windows: Iterable[Mapping[str, Any]], tier: str) -> float | None:
    """The tier's number, mean over the windows; None if the tier has none."""
    name, _ = HEADLINES.get(tier, ("", ""))
    found = [window[name] for window in windows if window.get(name) is not None]
    return sum(found) / len(found) if found else None


def headline(windows: Iterable[Mapping[str, Any]], tier: str) -> str:
    """The same as text; "" if there is none."""
    ratio = utilization_ratio(windows, tier)
    return "" if ratio is None else HEADLINES[tier][1].format(100 * ratio)
