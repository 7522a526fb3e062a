"""What a call needs in memory: its peak, what is kept between calls, what torch does not count."""

from collections.abc import Mapping
from typing import Any

from ...harness.rows.readings import seen_from_bytes

MOST_BYTES = 1 << 60  # of a size in a file, so that three of them can be added


def clearly_outside_bytes(row: Mapping[str, Any]) -> int:
    """`outside_bytes` if they can be seen, else 0; also 0 if they are not known."""
    outside, counted = row.get("outside_bytes"), _counted(row)
    if outside is None or counted is None:
        return 0
    least = seen_from_bytes(row.get("device") or "cpu", counted)
    return min(outside, MOST_BYTES) if outside > least else 0


def needed_bytes(row: Mapping[str, Any]) -> int | None:
    """Peak, workspace, and what is clearly outside torch's allocator; None without a peak.

    In rows of earlier versions the peak alone.
    """
    counted = _counted(row)
    return None if counted is None else counted + clearly_outside_bytes(row)


def _counted(row: Mapping[str, Any]) -> int | None:
    peak: int | None = row.get("peak_bytes")
    if peak is None:
        return None
    return min(peak, MOST_BYTES) + min(row.get("workspace_bytes") or 0, MOST_BYTES)
