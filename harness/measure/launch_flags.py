"""Flags of a row whose GPU timings deserve a doubt, set by the parent process without torch."""

from collections.abc import Mapping
from statistics import median
from typing import Any

from .conditions import count_flagged

UNSEEN_RATIO = 1.5
"""Of the time between the events: `block_ms` starts from a cold L2, the wall clock's calls do not,
so the wall clock's share of the device is the smaller one.
"""
UNSEEN_MS = 0.2  # waking the host after the last kernel, and the clock's own two waits
NOT_CAPTURED = "cannot be captured"  # how a `graph_reason` begins if capturing was tried


def add_floor(fields: dict[str, Any], event: Mapping[str, Any]) -> None:
    """Keep the lowest of all warm-ups: every process and every new start measures them again."""
    for name in ("launch_ms", "shortest_call_ms"):
        known = [value for value in (fields.get(name), event.get(name)) if value is not None]
        fields[name] = min(known, default=None)


def launch_flags(row: Mapping[str, Any]) -> dict[str, Any]:
    """`late_calls`, `graph_failed` and `unseen_work` of a row with samples; null on a CPU."""
    reason = row.get("graph_reason")
    blocks = (block for process in row.get("conditions") or () for block in process)
    return {
        "late_calls": count_flagged(block.get("late_calls") for block in blocks),
        "graph_failed": None if reason is None else reason.startswith(NOT_CAPTURED),
        "unseen_work": _unseen_work(row),
    }


def _unseen_work(row: Mapping[str, Any]) -> bool | None:
    """Whether the wall clock waited for much more than launching and what the events enclose."""
    wall, block = (_typical(row, name) for name in ("wall_block_ms", "block_ms"))
    launch = row.get("launch_ms")
    if wall is None or block is None or launch is None:
        return None
    return bool(wall - launch > UNSEEN_RATIO * block + UNSEEN_MS)


def _typical(row: Mapping[str, Any], name: str) -> float | None:
    blocks = [median(block) for process in row.get(name) or () for block in process if block]
    return median(blocks) if blocks else None
