"""Contrasts of two cases, on small examples and against scipy."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as scipy_stats

from attnbench.harness.stats.contrasts import (
    MOST_PRIOR_DEGREES,
    Contrast,
    Spread,
    foreseen_spread,
    holm,
    paired_contrast,
    pooled,
    unpaired_contrast,
)
from attnbench.harness.stats.intervals import CONFIDENCE, ratio_interval


def test_an_unpaired_contrast_is_welchs_t_on_logarithms():
    above, below = [1.2, 1.3, 1.25, 1.4], [1.0, 1.1, 0.9, 1.05, 1.02, 0.99]
    contrast = unpaired_contrast([[[x]] for x in above], [[[x]] for x in below])
    oracle = scipy_stats.ttest_ind(np.log(above), np.log(below), equal_var=False)
    interval, expected = contrast.interval(), oracle.confidence_interval(CONFIDENCE)
    bounds = (math.log(interval.low), math.log(interval.high))
    assert bounds == pytest.approx((expected.low, expected.high))
    assert contrast.p_beyond(0.0) == pytest.approx(oracle.pvalue)


def test_an_interval_beyond_the_margin_and_a_small_p_value_are_one_fact():
    rng = np.random.default_rng(5)
    for ratio in np.linspace(1.0, 1.2, 60):
        sides = [
            [[[float(x)]] for x in np.exp(rng.normal(np.log(level), 0.02, 5))]
            for level in (ratio, 1.0)
        ]
        contrast = unpaired_contrast(*sides)
        assert (contrast.interval().low > 1.03) == (
            contrast.log_ratio > 0 and contrast.p_beyond(0.03) < 1 - CONFIDENCE
        )


def test_a_paired_contrast_has_the_interval_of_the_ratio():
    one, other = (
        [[[level * (1 + wobble)] for wobble in (0.0, 0.01, 0.02)] for level in levels]
        for levels in ((1, 2, 3), (2, 4.1, 6))
    )
    found, expected = paired_contrast(one, other).interval(), ratio_interval(one, other)
    bounds = (expected.value, expected.low, expected.high)
    assert (found.value, found.low, found.high) == pytest.approx(bounds)
    assert found.units == expected.units


def test_one_unit_has_no_interval_and_no_p_value():
    contrast = unpaired_contrast([[[1.0]]], [[[2.0]]])
    assert contrast.interval().value == pytest.approx(0.5)
    assert math.isnan(contrast.interval().low)
    assert math.isnan(contrast.p_beyond(0.0))


def test_an_interval_too_wide_for_numbers_is_infinite():
    interval = paired_contrast([[[1e-9]], [[1e12]]], [[[1e12]], [[1e-9]]]).interval()
    assert (interval.low, interval.high) == (0, math.inf)


def test_pooled_contrasts_average_unit_by_unit():
    contrasts = [
        paired_contrast([[[r]] for r in ratios], [[[1.0]]] * 3)
        for ratios in ((1.1, 1.2, 1.3), (1.3, 1.2, 1.1))
    ]
    shared = pooled(contrasts)
    assert shared.numerator == pytest.approx(
        [math.log(1.1 * 1.3) / 2, math.log(1.2), math.log(1.1 * 1.3) / 2]
    )
    assert pooled([contrasts[0], paired_contrast([[[1.0]]] * 2, [[[1.0]]] * 2)]) is None
    assert pooled([]) is None


def test_holm_multiplies_the_smallest_by_the_number_of_claims():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.5]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []


def test_variances_that_differ_by_chance_only_foresee_with_the_most_degrees():
    """Smyth (2004): of 5 000 variances with 2 degrees of freedom each."""
    rng = np.random.default_rng(0)
    alike = 0.04**2 * rng.chisquare(2, 5000) / 2
    found = foreseen_spread([(square, 2.0) for square in alike])
    assert found.sd == pytest.approx(0.04, rel=0.03)
    assert found.degrees == MOST_PRIOR_DEGREES


def test_variances_that_differ_foresee_with_the_degrees_by_which_they_do():
    rng = np.random.default_rng(1)
    true = 0.04**2 * 4 / rng.chisquare(4, 5000)  # a scaled inverse chi-square, 4 degrees
    found = foreseen_spread([(square, 2.0) for square in true * rng.chisquare(2, 5000) / 2])
    assert found.sd == pytest.approx(0.04, rel=0.05)
    assert found.degrees == pytest.approx(4, rel=0.15)


def test_two_variances_foresee_nothing():
    assert foreseen_spread([(0.01, 2.0)] * 2) is None
    assert foreseen_spread([(0.01, 2.0)] * 2 + [(0.0, 2.0)]) is None  # no variance, as of copies


def test_a_prior_counts_with_its_degrees_of_freedom():
    units = (0.10, 0.13, 0.12)
    own, prior = np.var(units, ddof=1), Spread(sd=0.02, degrees=10.0)
    contrast = Contrast(numerator=units, prior=prior)
    error = math.sqrt((2 * own + 10 * 0.02**2) / 12 / 3)
    reach = scipy_stats.t.ppf((1 + CONFIDENCE) / 2, 12) * error
    interval = contrast.interval()
    assert math.log(interval.high) == pytest.approx(np.mean(units) + reach)
    assert math.log(interval.low) == pytest.approx(np.mean(units) - reach)
    assert contrast.p_beyond(0.0) == pytest.approx(2 * scipy_stats.t.sf(np.mean(units) / error, 12))


def test_a_prior_does_not_change_what_ranks_decide():
    units = (0.1, 0.2, 0.12, 0.15, 0.11, 0.3)
    one, other = (
        Contrast(numerator=units, prior=prior) for prior in (None, Spread(sd=1, degrees=9))
    )
    assert one.interval() == other.interval()


def test_a_pair_much_noisier_than_the_others_has_its_own_variance():
    units = (0.10, 0.30, 0.12)
    one, other = (
        Contrast(numerator=units, prior=prior) for prior in (None, Spread(sd=0.02, degrees=6))
    )
    assert one.interval() == other.interval()
    assert one.p_beyond(0.0) == other.p_beyond(0.0)


def test_units_that_vary_more_than_single_processes_do_keep_their_own_variance():
    noisy = Contrast(numerator=(0.0, 0.5, 1.0), denominator=(0.0, 0.4, 0.9))
    known = replace(noisy, single=Spread(sd=0.01, degrees=20))
    assert known.interval() == noisy.interval()
    assert known.p_beyond(0.0) == noisy.p_beyond(0.0)
