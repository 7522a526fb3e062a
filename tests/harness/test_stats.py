"""Intervals: right on samples whose truth is known."""

import math

import numpy as np
import pytest

from attnbench.harness.stats import latency_interval, ratio_interval


def blocks(rng, processes, count, *, centre=2.0, process_sd=0.04, block_sd=0.02):
    """Samples with a process effect and a block effect, lognormal."""
    return [[[centre * math.exp(p + b)] * 3 for b in rng.normal(0, block_sd, count)] for p in rng.normal(0, process_sd, processes)]


def test_interval_over_processes_covers_the_truth_in_95_percent():
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(1000):
        interval = latency_interval(blocks(rng, 5, 4))
        hits += interval.low <= 2.0 <= interval.high
    assert 930 <= hits <= 980


def test_paired_ratio_covers_the_truth_under_drift_between_blocks():
    rng = np.random.default_rng(2)
    hits = 0
    for _ in range(1000):
        drift = rng.normal(0, 0.2, 8)
        a = [[[3.0 * math.exp(d + e)] for d, e in zip(drift, rng.normal(0, 0.02, 8), strict=True)]]
        b = [[[2.0 * math.exp(d + e)] for d, e in zip(drift, rng.normal(0, 0.02, 8), strict=True)]]
        interval = ratio_interval(a, b)
        hits += interval.low <= 1.5 <= interval.high
    assert 930 <= hits <= 980


def test_one_process_says_that_runs_may_differ():
    interval = latency_interval([[[1.0], [1.1], [0.9]]])
    assert interval.units == 3
    assert "run-to-run" in interval.reason


def test_several_processes_count_once_each():
    interval = latency_interval([[[1.0], [1.1]], [[1.2], [1.1]], [[0.9], [1.0]]])
    assert interval.units == 3
    assert interval.reason == ""


def test_one_block_has_a_value_and_no_interval():
    interval = latency_interval([[[1.0, 2.0, 9.0]]])
    assert interval.value == pytest.approx(2.0)
    assert math.isnan(interval.low)
    assert math.isnan(interval.half_width_ratio)
    assert "one block" in interval.reason


def test_no_samples_are_no_number():
    assert math.isnan(latency_interval([]).value)


def test_half_width_is_a_ratio():
    interval = latency_interval([[[1.0], [1.1], [0.9], [1.05]]])
    assert interval.high / interval.value == pytest.approx(math.exp(interval.half_width_ratio))


def test_ratio_of_strangers_is_refused():
    with pytest.raises(ValueError, match="no block in common"):
        ratio_interval([[[1.0]]], [])


def test_ratio_uses_only_common_blocks():
    assert ratio_interval([[[2.0], [2.0], [50.0]]], [[[1.0], [1.0]]]).value == pytest.approx(2.0)
