"""Which intervals are too wide to be of use. Imports nothing, since what writes texts needs it."""

MOST_TIMES = 10.0
"""An interval that reaches farther either way from its middle, on the log scale, says nothing."""


def says_nothing(low: float, high: float) -> bool:
    """Whether an interval of a positive quantity, such as a latency, is too wide to be of use."""
    return high > 0 and low >= 0 and high >= MOST_TIMES**2 * low


def ratio_says_nothing(low: float, high: float) -> bool:
    """Whether an interval of a ratio decides nothing: it is as wide, and on both sides of 1."""
    return says_nothing(low, high) and low <= 1 <= high
