"""What a call needs in memory: its peak, what is kept between calls, what torch does not count."""

from collections.abc import Mapping
from typing import Any

# The kernel counts pages, and malloc's heap is not only the backend's: less is noise.
OUTSIDE_SLACK_BYTES = 4 << 20
OUTSIDE_SLACK_RATIO = 0.01


def clearly_outside_bytes(row: Mapping[str, Any]) -> int:
    """`outside_bytes` if it is more than noise, else 0; also 0 if it is not known."""
    outside, counted = row.get("outside_bytes"), _counted(row)
    if outside is None or counted is None:
        return 0
    return outside if outside > OUTSIDE_SLACK_BYTES + OUTSIDE_SLACK_RATIO * counted else 0


def needed_bytes(row: Mapping[str, Any]) -> int | None:
    """Peak, workspace, and what is clearly outside torch's allocator; None without a peak.

    In rows of earlier versions the peak alone.
    """
    counted = _counted(row)
    return None if counted is None else counted + clearly_outside_bytes(row)


def _counted(row: Mapping[str, Any]) -> int | None:
    peak: int | None = row.get("peak_bytes")
    return None if peak is None else peak + (row.get("workspace_bytes") or 0)
