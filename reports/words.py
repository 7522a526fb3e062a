"""The words of verdicts: what the interval of a ratio lets one say."""

from math import isfinite
from typing import Literal

Word = Literal["same", "more", "less", "not decided"]
NOT_DECIDED: Word = "not decided"
"""The one word for what no interval and no test decides, on pages, in tables and in files. A "tie"
is what was shown to be the same.
"""
SAME_RATIO = 0.05  # costs within this margin count as the same
DISTURBED = ", while other work disturbed most blocks"
"""After numbers that decide nothing for that reason."""
BY_PROCESSOR_TIME = "by processor time"
"""After ratios of calls whose time by the clock other work disturbed."""


def word_of(low: float, high: float, margin_ratio: float = SAME_RATIO) -> Word:
    """Of a ratio by its interval, or of an exact one: more or less if it lies beyond the margin,
    the same if within, else not decided, as without an interval.
    """
    if not (isfinite(low) and isfinite(high)):
        return NOT_DECIDED
    edge = 1 + margin_ratio
    if low >= 1 / edge and high <= edge:
        return "same"
    return "more" if low > edge else "less" if high < 1 / edge else NOT_DECIDED
