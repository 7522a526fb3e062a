"""The kinds of utilization: they mean different things, so a row names its kind."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

Tier = Literal["gpm", "busy", "derived", "host"]
MEANING: dict[Tier, str] = {
    "gpm": "share of the SMs at work, from the GPU's own performance counters",
    "busy": "share of the time in which any kernel ran, not how much of the GPU was at work",
    "derived": "the model's FLOPs over the highest rate that calibration measured, no counter",
    "host": "CPU time of the process over the time of its threads",
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
