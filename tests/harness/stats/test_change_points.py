"""Change points of made-up series: none where nothing changes, and steps where they are."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from attnbench.harness.stats.change_points import FEWEST_RUNS, LEVEL, change_points

NOISE = {
    "normal": lambda rng, shape: rng.normal(0, 0.02, shape),
    "with outliers": lambda rng, shape: 0.02 * rng.standard_t(2, shape),
    "shared by all cases": lambda rng, shape: (
        rng.normal(0, 0.02, shape[1:]) + rng.normal(0, 0.005, shape)
    ),
}


@pytest.mark.parametrize("kind", NOISE)
def test_where_nothing_changes_one_analysis_in_20_at_most_names_a_change(kind):
    """Of five cases together; the bound of the count is wrong once in 1 000."""
    rng, analyses = np.random.default_rng(7), 80
    named = sum(any(change_points(NOISE[kind](rng, (5, 14)))) for _ in range(analyses))
    assert named <= binom.ppf(0.999, analyses, LEVEL)
    assert named > 0  # at that level, not at a far lower one that would find nothing


@pytest.mark.parametrize("at", [4, 10, 15])
def test_a_step_of_10_percent_at_2_percent_noise_is_found_where_it_is(at):
    rng, exact, others = np.random.default_rng(at), 0, 0
    for _ in range(10):
        series = rng.normal(0, 0.02, (4, 20))
        series[2, at:] += math.log(1.1)
        found = change_points(series)
        (where,) = found.pop(2)
        assert abs(where - at) <= 1  # one value in 80 is nearer to the other level
        exact += where == at
        others += any(found)
    assert exact >= 8
    assert others <= binom.ppf(0.999, 10, LEVEL)


def test_every_step_of_a_series_is_found_and_each_case_has_its_own():
    rng = np.random.default_rng(3)
    series = rng.normal(0, 0.01, (2, 30))
    series[0, 10:20] += 0.1
    series[1, 15:] -= 0.1
    assert change_points(series) == [[10, 20], [15]]


def test_runs_without_a_value_are_passed_over_and_still_counted():
    rng = np.random.default_rng(4)
    series = rng.normal(0, 0.01, (2, 24))
    series[0, 12:] += 0.1
    series[0, [2, 3, 11, 12, 20]] = math.nan
    series[1, :] = math.nan
    assert change_points(series) == [[13], []]


def test_neither_scale_nor_sign_nor_a_wild_run_moves_a_change():
    series = np.random.default_rng(5).normal(0, 0.02, (1, 16))
    series[0, 9:] += 0.1
    one_wild = series.copy()
    one_wild[0, 12] = 50.0
    assert change_points(series) == change_points(3 + 7 * series) == change_points(one_wild)
    assert change_points(-series) == change_points(series) == [[9]]


@pytest.mark.parametrize(
    "series",
    [
        pytest.param([], id="no case"),
        pytest.param([[]], id="no run"),
        pytest.param([[1.0] * 40], id="equal values"),
        pytest.param([[math.nan] * 12], id="no value"),
        pytest.param([[0.0] * 3 + [1.0] * (FEWEST_RUNS - 4)], id="too few runs"),
        pytest.param([[1.0, 1.0, 1.0, 9.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]], id="one wild run"),
    ],
)
def test_what_shows_no_change_has_none(series):
    assert not any(change_points(series))


def test_the_fewest_runs_show_a_step_in_their_middle():
    half = FEWEST_RUNS // 2
    assert change_points([[*range(half), *range(10, 10 + half)]]) == [[half]]


def test_cases_of_different_numbers_of_runs_are_refused():
    with pytest.raises(ValueError, match="shape"):
        change_points([[1.0, 2.0], [1.0]])
