"""What may be wrong with a case's times, as its row tells: each of these is a check of its own."""

from collections.abc import Callable, Mapping, Sequence

from ..data.row_groups import Row

# Bits of NVML's clock event mask: software power cap, power brake; thermal slowdowns.
POWER_MASK, HEAT_MASK = 0x4 | 0x80, 0x20 | 0x40
SLOWDOWN = 0x8  # NVML's HwSlowdown: heat or power, which it does not say
FEW_RATIO = 0.05  # of all calls: a few of them move no median
QUOTA = "a quota held the processor back"
Amiss = Callable[[Row], bool | None]


def _others(row: Row) -> bool | None:
    found = (window.get("other_process_count") for window in row.get("windows") or [])
    counts = [count for count in found if type(count) is int]
    return any(counts) if counts else None


def _often_late(row: Row) -> bool | None:
    """Of the calls between events, with a flush of L2 before them and without."""
    blocks = [
        block
        for name in ("block_ms", "hot_block_ms")
        for process in row.get(name) or ()
        for block in process
    ]
    late: int | None = row.get("late_calls")
    return None if late is None else late > FEW_RATIO * sum(map(len, blocks))


ON_GPU: Mapping[str, tuple[Amiss, str, str]] = {
    "other processes": (_others, "other processes used the device", ""),
    "unseen work": (
        lambda row: row.get("unseen_work"),
        "the wall clock saw much more than launching and the time between the events",
        "The latency may be too short.",
    ),
    "late calls": (
        _often_late,
        "the GPU often began a call before the host had launched all of it",
        "Launch gaps may be in its time.",
    ),
    "CUDA graphs": (
        lambda row: row.get("graph_failed"),
        "capturing a CUDA graph failed",
        "Launch costs are not known.",
    ),
    "launching": (
        lambda row: row.get("launch_bound"),
        "a call and its wait take more than 1.1 times as long as the same work in a CUDA graph",
        "",
    ),
}
"""Whether it is so, None if that is not known; what, and what follows."""


def was_warming(row: Row) -> bool | None:
    stationary = row.get("warmup_stationary")
    return None if stationary is None else not stationary


def held_back(timed: Sequence[Row]) -> str:
    """What slowed the device down in blocks that count as throttled."""
    if power_only(timed):
        return "the GPU lowered its clock to stay below its power limit"
    on_gpu = any(row.get("device") == "cuda" for row in timed)
    return f"power or heat lowered the GPU's clock, or {QUOTA}" if on_gpu else QUOTA


def power_only(timed: Sequence[Row]) -> bool:
    """Whether every reason for which a GPU lowered its clock was power, and no quota held it up."""
    blocks = [
        block for row in timed for process in row.get("conditions") or [] for block in process
    ]
    masks = [int(block.get("clock_event_reasons") or 0) for block in blocks]

    def counted(name: str) -> bool:
        return any((block.get(name) or 0) > 0 for block in blocks)

    power = counted("power_throttled_s") or any(mask & POWER_MASK for mask in masks)
    heat = counted("thermal_throttled_s") or any(mask & (HEAT_MASK | SLOWDOWN) for mask in masks)
    return power and not heat and not counted("throttled_s")
