"""Intervals and tests on small examples, and against scipy if it has the same."""

import math
from math import inf, isnan

import numpy as np
import pytest
from scipy import stats as scipy_stats

from attnbench.harness.stats.intervals import (
    CONFIDENCE,
    lag1_correlation,
    latency_interval,
    median_bounds,
    ratio_interval,
    stationary,
    trend,
)


def test_one_process_says_that_runs_may_differ():
    interval = latency_interval([[[1.0], [1.1], [0.9]]])
    assert interval.units == 3
    assert "run-to-run" in interval.reason


def test_several_processes_count_once_each():
    interval = latency_interval([[[level], [1.1 * level]] for level in (1.0, 1.2, 0.9, 2.0, 1.1)])
    assert (interval.units, interval.reason) == (5, "")
    assert interval.value == pytest.approx(1.1 * math.sqrt(1.1))  # the median process


def test_fewer_than_five_processes_say_what_their_interval_assumes():
    interval = latency_interval([[[1.0]], [[1.1]], [[0.9]], [[1.05]]])
    assert interval.reason == "4 processes: the interval assumes that they are of one kind"


def test_an_interval_over_five_processes_spans_them_all_and_that_of_students_t():
    levels = [1.0, 1.01, 1.02, 1.03, 1.5]
    interval = latency_interval([[[level]] for level in levels])
    oracle = scipy_stats.ttest_1samp(np.log(levels), 0).confidence_interval(0.95)
    assert math.log(interval.low) == pytest.approx(oracle.low)
    assert math.log(interval.high) == pytest.approx(max(oracle.high, math.log(1.5)))
    two_kinds = latency_interval([[[level]] for level in (1.0, 1.001, 1.002, 1.003, 1.1)])
    assert two_kinds.high >= 1.1


@pytest.mark.parametrize(("processes", "outer"), [(6, 1), (8, 1), (9, 1), (10, 2), (20, 5)])
def test_an_interval_over_more_processes_lies_between_the_ranks_that_enclose_its_level(
    processes, outer
):
    levels = [math.exp(k) for k in range(processes)]
    interval = latency_interval([[[level]] for level in levels])
    inner = processes - outer  # ranks from below, beginning with 1
    assert levels[outer - 1] <= interval.low * (1 + 1e-9)
    assert interval.low < levels[outer]
    assert levels[inner - 1] < interval.high <= levels[inner] * (1 + 1e-9)
    covered = [
        1 - 2 * scipy_stats.binom.cdf(rank - 1, processes, 0.5) for rank in (outer, outer + 1)
    ]
    assert covered[0] >= CONFIDENCE > covered[1]


def test_the_interval_is_students_t_on_logarithms():
    values = [1.0, 1.1, 0.9, 1.05]
    interval = latency_interval([[[value] for value in values]])
    oracle = scipy_stats.ttest_1samp(np.log(values), 0).confidence_interval(CONFIDENCE)
    assert (math.log(interval.low), math.log(interval.high)) == pytest.approx(
        (oracle.low, oracle.high)
    )


def test_one_block_has_a_value_and_no_interval():
    interval = latency_interval([[[1.0, 2.0, 9.0]]])
    assert interval.value == pytest.approx(2.0)
    assert math.isnan(interval.low)
    assert math.isnan(interval.half_width_ratio)
    assert "one block" in interval.reason


def test_neighbouring_blocks_that_correlate_widen_the_interval():
    drifting = latency_interval([[[1.0 + 0.01 * i] for i in range(9)]])
    assert "correlate" in drifting.reason
    shuffled = latency_interval([[[1.0 + 0.01 * i] for i in (4, 0, 7, 2, 8, 1, 5, 3, 6)]])
    assert "correlate" not in shuffled.reason
    assert drifting.half_width_ratio > 2 * shuffled.half_width_ratio


def test_a_ratio_without_common_blocks_is_refused():
    with pytest.raises(ValueError, match="no block in common"):
        ratio_interval([[[1.0]]], [])


def test_ratio_uses_only_common_blocks():
    assert ratio_interval([[[2.0], [2.0], [50.0]]], [[[1.0], [1.0]]]).value == pytest.approx(2.0)


# ---- correlation, trend, outliers ----------------------------------------------------------------


def test_lag_1_correlation_finds_drift_and_not_noise():
    rng = np.random.default_rng(3)
    assert abs(lag1_correlation(rng.normal(size=2000))) < 0.1
    walk = [0.0]
    for noise in rng.normal(size=2000):
        walk.append(0.8 * walk[-1] + noise)
    assert lag1_correlation(walk) == pytest.approx(0.8, abs=0.05)


def test_correlation_of_few_values_is_not_a_number():
    assert math.isnan(lag1_correlation([1.0, 2.0]))
    assert math.isnan(lag1_correlation([1.0, 1.0, 1.0]))


def test_trend_is_kendalls_tau_in_standard_deviations():
    values = np.random.default_rng(4).normal(size=25) + 0.05 * np.arange(25)
    tau = scipy_stats.kendalltau(np.arange(25), values).statistic
    pairs = 25 * 24 / 2
    assert trend(values) == pytest.approx(tau * pairs / math.sqrt(25 * 24 * 55 / 18))
    assert trend([1.0]) == 0.0


# ---- warm-up -------------------------------------------------------------------------------------


def test_steady_calls_are_stationary_and_a_ramp_is_not():
    noise = np.random.default_rng(5).normal(1.0, 0.02, 40)
    assert stationary(noise) is True
    assert stationary(noise * np.linspace(1.3, 1.0, 40)) is False


def test_a_step_down_is_noticed_until_it_is_behind_the_windows():
    rng = np.random.default_rng(6)
    cold, warm = rng.normal(1.5, 0.01, 20), rng.normal(1.0, 0.01, 60)
    assert stationary([*cold, *warm[:20]]) is False
    assert stationary([*cold, *warm]) is True


def test_stationary_noise_is_found_to_be_so():
    rng = np.random.default_rng(7)
    found = [stationary(rng.lognormal(0, 0.05, 40)) for _ in range(500)]
    assert sum(map(bool, found)) >= 494


# ---- medians by ranks


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
