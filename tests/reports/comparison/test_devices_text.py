"""Ratios of devices as text: with digits enough for a percent, and a reason without an interval."""

from math import nan

from attnbench.harness.stats.intervals import Interval
from attnbench.reports.comparison.devices_text import interval_text, ratio_text


def test_a_ratio_near_1_has_three_decimals_and_its_interval() -> None:
    ratio = Interval(value=1.0342, low=1.0291, high=1.0396, units=6)
    assert ratio_text(ratio) == "1.034 (1.029 to 1.040)"
    assert interval_text(ratio) == "1.034 times (1.029 to 1.040)"


def test_a_ratio_that_is_far_away_has_three_digits() -> None:
    ratio = Interval(value=820.2, low=12.04, high=68915879.0, units=6)
    assert ratio_text(ratio) == "820 (12.0 to 6.89e+07)"


def test_without_an_interval_the_reason_stands_there() -> None:
    ratio = Interval(value=1.2, low=nan, high=nan, units=2, reason="2 groups: no interval")
    assert interval_text(ratio) == "1.200 times (2 groups: no interval)"
