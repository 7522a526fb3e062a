"""harness/stats/counted.py: intervals of medians, by ranks."""

from math import inf, isnan

import pytest

from attnbench.harness.stats.counted import median_bounds


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
