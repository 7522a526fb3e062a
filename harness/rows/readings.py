"""What numbers mean to those who measure them and to those who read them: kinds of utilization, and
from how many bytes on memory that is counted by pages can be seen.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

# The exact counts of torch's allocators know nothing of memory elsewhere (numpy, malloc, what a
# library has of its own). Pages do, but they also hold what libraries take when first used:
# in 36 cases of built-in backends on two busy cores up to 3.4 MiB. A GPU's memory holds their code.
SEEN_FROM_BYTES = {"cpu": 4 << 20, "cuda": 512 << 20}
SEEN_FROM_RATIO = 0.01  # of what is counted exactly beside it
BELOW = "below what can be seen"


def seen_from_bytes(device: str, counted_bytes: int = 0) -> int:
    """`counted_bytes`: what is counted exactly of the same call."""
    least = SEEN_FROM_BYTES.get(device, SEEN_FROM_BYTES["cuda"])
    return least + int(SEEN_FROM_RATIO * counted_bytes)


Tier = Literal["gpm", "busy", "derived", "host"]
"""The kinds of utilization, which mean different things, so a row names its kind."""
MEANING: dict[Tier, str] = {
    "gpm": "share of the SMs at work, from the GPU's own performance counters",
    "busy": "share of the time in which any kernel ran, on however few SMs",
    "derived": "FLOPs over the highest rate that calibration measured; not a counter",
    "host": "CPU time of the process over the time of its threads",
}
HEADLINES: dict[str, tuple[str, str]] = {
    "gpm": ("sm_active_ratio", "{:.0f} % of the SMs active"),
    "busy": ("kernel_busy_ratio", "kernels run {:.0f} % of the time"),
    "host": ("host_cpu_ratio", "threads busy {:.0f} % of the time"),
}


def tier_of(
    windows: Iterable[Mapping[str, Any]], device: str, peaks: Mapping[str, float] | None
) -> Tier:
    """The best kind that these windows have.

    A CPU's windows have no GPU counter, also if the machine has a GPU.
    """
    seen = {name for window in windows for name, value in window.items() if value is not None}
    if "sm_active_ratio" in seen:
        return "gpm"
    if "kernel_busy_ratio" in seen:
        return "busy"
    return "derived" if device == "cuda" and peaks else "host"


def utilization_ratio(windows: Iterable[Mapping[str, Any]], tier: str) -> float | None:
    """The tier's number, mean over the windows; None if the tier has none."""
    name, _ = HEADLINES.get(tier, ("", ""))
    found = [window[name] for window in windows if window.get(name) is not None]
    return sum(found) / len(found) if found else None


def headline(windows: Iterable[Mapping[str, Any]], tier: str) -> str:
    """The same as text; "" if there is none."""
    ratio = utilization_ratio(windows, tier)
    return "" if ratio is None else HEADLINES[tier][1].format(100 * ratio)
