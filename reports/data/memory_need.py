"""What a call needs in memory: its peak, what is kept between calls, what torch does not count."""

from collections.abc import Mapping
from typing import Any

OUTSIDE_SLACK_BYTES = {"cpu": 4 << 20, "cuda": 512 << 20}
"""Less is noise. CPU: pages, and what libraries take when they are first used. CUDA: the code of
libraries, which is loaded into the device's memory when it is first used.
"""
OUTSIDE_SLACK_RATIO = 0.01
MOST_BYTES = 1 << 60  # of a size in a file, so that three of them can be added


def clearly_outside_bytes(row: Mapping[str, Any]) -> int:
    """`outside_bytes` if it is more than noise, else 0; also 0 if it is not known."""
    outside, counted = row.get("outside_bytes"), _counted(row)
    if outside is None or counted is None:
        return 0
    slack = OUTSIDE_SLACK_BYTES.get(row.get("device") or "cpu", OUTSIDE_SLACK_BYTES["cuda"])
    return min(outside, MOST_BYTES) if outside > slack + OUTSIDE_SLACK_RATIO * counted else 0


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
