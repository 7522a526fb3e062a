"""reports/learning/trained.py: accuracy over the level of noise, in new and old rows."""

from typing import Any

import pytest

from attnbench.reports.learning.trained import (
    HeadCount,
    accuracy_over_noise,
    levels_of,
    points_lost,
    results,
)
from tests.reports.fake_trainings import training

ONE_LEVEL = {"noise_levels_ratio": None, "noise_levels_accuracy_ratio": None}


def count_of(*findings: dict[str, Any]) -> HeadCount:
    (found,) = results([{"study": "trained_heads", **one} for one in findings])
    return found.counts[0]


def test_levels_come_in_order_and_begin_without_noise() -> None:
    shuffled = {"noise_levels_ratio": [2.0, 0.5], "noise_levels_accuracy_ratio": [0.1, 0.6]}
    found = accuracy_over_noise(
        count_of(*(training("copy", 2, seed, 0.9, **shuffled) for seed in range(5)))
    )
    assert list(found) == [0.0, 0.5, 2.0]
    assert [one.value for one in found.values()] == pytest.approx([0.9, 0.6, 0.1])


def test_rows_of_one_level_have_it() -> None:
    old = count_of(training("copy", 2, 0, 0.9, **ONE_LEVEL)).trainings[0]
    assert levels_of(old) == {0.5: 0.45}
    assert points_lost(old) == pytest.approx(45)


def test_points_lost_are_the_mean_over_levels() -> None:
    count = count_of(training("copy", 2, 0, 0.8))
    assert count.mean(points_lost).value == pytest.approx(40)  # of 20, 40 and 60


def test_seeds_with_different_levels_share_what_they_have_in_common() -> None:
    several = training("copy", 2, 0, 0.8)
    old = training("copy", 2, 1, 0.8, **ONE_LEVEL)
    assert list(accuracy_over_noise(count_of(several, old))) == [0.0, 0.5]


@pytest.mark.parametrize(
    "broken",
    [
        {"noise_levels_ratio": [0.5], "noise_levels_accuracy_ratio": [0.5, 0.6]},
        {**ONE_LEVEL, "noise_ratio": None},
        {**ONE_LEVEL, "noisy_accuracy_ratio": None},
    ],
)
def test_what_is_not_whole_is_not_known(broken: dict[str, Any]) -> None:
    count = count_of(training("copy", 2, 0, 0.8, **broken))
    assert levels_of(count.trainings[0]) == {}
    assert points_lost(count.trainings[0]) is None
    assert accuracy_over_noise(count) == {}
    assert count.mean(points_lost).units == 0
