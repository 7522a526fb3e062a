"""What may be wrong with a GPU's times, of each row."""

from collections.abc import Sequence

from ..data.row_groups import Row

LATE = "late_calls"
# Bits of NVML's clock event mask: software power cap, power brake; thermal slowdowns.
POWER_MASK, HEAT_MASK = 0x4 | 0x80, 0x20 | 0x40
GPU_DOUBTS: dict[str, str] = {
    "unseen_work": (
        "the wall clock saw much more than launching and the time between the events, so that the"
        " latency may be too short"
    ),
    LATE: (
        "the GPU often began a call before the host had launched all of it, so that launch gaps may"
        " be in its time"
    ),
    "graph_failed": "no CUDA graph could be captured, so that launch costs are not known",
}
FEW_RATIO = 0.05  # of all calls: a few of them move no median
SLOWDOWN = 0x8  # NVML's HwSlowdown: heat or power, which it does not say
QUOTA = "a quota held the processor back"


def is_in_doubt(row: Row, flag: str) -> bool:
    """By one of `GPU_DOUBTS`."""
    return bool(row.get(flag)) and (flag != LATE or _often_late(row))


def _often_late(row: Row) -> bool:
    """Of the calls between events, with a flush of L2 before them and without."""
    blocks = [
        block
        for name in ("block_ms", "hot_block_ms")
        for process in row.get(name) or ()
        for block in process
    ]
    return bool(row[LATE] > FEW_RATIO * sum(map(len, blocks)))


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
