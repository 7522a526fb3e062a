"""harness/stats/counted.py: intervals of shares and medians cover the truth, by exact sums."""

from math import comb, inf, isnan

import pytest

from attnbench.harness.stats.counted import median_bounds, share_interval
from attnbench.harness.stats.intervals import CONFIDENCE


@pytest.mark.parametrize("of", [1, 6, 20])
@pytest.mark.parametrize("truth", [0.01, 0.2, 0.5, 0.9])
def test_the_interval_of_a_share_covers_the_truth_as_often_as_it_says(
    of: int, truth: float
) -> None:
    covered = sum(
        comb(of, count) * truth**count * (1 - truth) ** (of - count)
        for count in range(of + 1)
        if share_interval(count, of).low <= truth <= share_interval(count, of).high
    )
    assert covered >= CONFIDENCE


def test_all_and_none_are_possible_truths_of_themselves() -> None:
    every, none = share_interval(6, 6), share_interval(0, 6)
    assert (every.value, every.high, none.value, none.low) == (1, 1, 0, 0)
    assert every.low == pytest.approx(1 - none.high)
    assert every.low > 0.5


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([6, 5, 4, 3, 2, 1], (1, 6)),
        ([1, 2, 3, inf, inf, inf], (1, inf)),
        ([*range(9), inf, inf], (1, inf)),
        ([*range(11), inf], (1, 10)),
    ],
)
def test_the_median_lies_between_ranks(values: list[float], wanted: tuple[float, float]) -> None:
    assert median_bounds(values) == wanted


def test_five_values_do_not_bound_the_median() -> None:
    assert all(map(isnan, median_bounds([1, 2, 3, 4, 5])))
