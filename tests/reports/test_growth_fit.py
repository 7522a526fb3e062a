"""reports/growth_fit.py: exponents and formulas of rows with a known truth, or with little data.

How often intervals cover the truth: tests/bench/test_statistics_targets.py.
"""

from math import inf, isfinite, isnan, log
from typing import Any

import pytest

from attnbench.harness.stats.intervals import latency_interval
from attnbench.reports import growth_fit as growth
from attnbench.reports.data.row_groups import Row
from tests.made_runs import case, problem

LENGTHS = tuple(2**power for power in range(7, 14))
NEAR = (0.99, 0.995, 1, 1, 1.005, 1.01)


def timed(n: int, units_ms: list[float], *, processes: bool = False, **of: Any) -> Row:
    """A row with one call per unit: blocks of one process, or processes of one block."""
    block_ms = [[[time]] for time in units_ms] if processes else [[[time] for time in units_ms]]
    found = latency_interval(block_ms)
    numbers = {
        "latency_ms": found.value,
        "latency_run_low_ms": found.low,
        "latency_run_high_ms": found.high,
        "block_ms": block_ms,
    }
    planned = case("x", problem(n, **of))
    return {"run": "r", "status": "ok", "session": f"s{n}", **planned, **numbers}


def grown(time_ms: dict[int, float]) -> growth.Growth:
    """In six processes that differ by up to 2 %."""
    rows = [timed(n, [ms * one for one in NEAR], processes=True) for n, ms in time_ms.items()]
    return growth.growth(rows, "x")


def test_an_exponent_of_time_is_never_exact() -> None:
    """Not even where a formula that allows no negative term has 2 in every sample."""
    found = grown({n: 1e-6 * n**2.05 for n in LENGTHS[:5]})
    low, high = found.at_longest.low, found.at_longest.high
    assert found.at_longest.value == pytest.approx(2.05)
    assert 2 < low < 2.05 < high
    equal = [timed(n, [1e-6 * n * n] * 6, processes=True) for n in LENGTHS]
    same = growth.growth(equal, "x").at_longest
    assert growth.interval_text(same).startswith("2.00 (within ")


def test_terms_that_are_not_there_may_be_negative_within_their_interval() -> None:
    found = grown({n: 0.02 + 2e-6 * n * n for n in LENGTHS})
    assert found.per_token_ms.low < 0 < found.per_token_ms.high
    assert found.constant_ms.low > 0
    assert found.per_pair_ms.low > 0
    assert found.crossover is not None
    assert found.crossover.low == 0
    assert found.describes


def test_a_constant_below_0_describes_times_that_grow_faster_at_first() -> None:
    """Where the formula falls below 0 it predicts nothing."""
    found = grown({n: 2e-3 * n - 0.1 for n in (64, 128, 256, 512, 1024)})
    assert found.constant_ms.high < 0
    assert found.describes
    assert growth.predict(found, 16).reason == "by the formula no time is left there"


def test_more_growth_may_be_hidden_where_it_rises_or_a_fixed_cost_is_left() -> None:
    settled = grown({n: 1e-6 * n**1.7 for n in LENGTHS[:5]})
    assert settled.at_longest.high < settled.most < 1.9
    assert grown({n: 1e-6 * n * (n + 500) for n in LENGTHS[:5]}).most == inf
    assert grown({n: 1 + 1e-6 * n for n in LENGTHS[:5]}).most > 1


def test_an_exponent_is_wider_where_times_follow_no_smooth_curve() -> None:
    smooth = {n: 1e-6 * n * n for n in LENGTHS[:5]}
    odd = smooth | {LENGTHS[3]: 1.3 * smooth[LENGTHS[3]]}
    with_step, without = grown(odd).at_longest, grown(smooth).at_longest
    assert with_step.value == pytest.approx(without.value)
    assert with_step.high - with_step.low > 3 * (without.high - without.low)


def test_three_lengths_have_an_exponent_and_no_formula() -> None:
    found = growth.growth([timed(n, [1.0 * n] * 6) for n in LENGTHS[:3]], "x")
    assert found.at_longest.value == pytest.approx(1)
    assert found.reason == "5 timed lengths are needed, and there are 3"
    assert isnan(growth.predict(found, 256).value)


def test_nothing_is_predicted_beyond_4_times_the_longest_length() -> None:
    constants, last = (0.01, 0.0101, 0.0099), 4 * LENGTHS[-1]
    rows = [timed(n, [constant + 1e-6 * n * n for constant in constants]) for n in LENGTHS]
    found = growth.growth(rows, "x")
    inside, outside = growth.predict(found, last), growth.predict(found, last + 1)
    assert inside.value == pytest.approx(0.01 + 1e-6 * last**2, rel=1e-3)
    assert inside.low <= inside.value <= inside.high
    assert isnan(outside.value)
    assert outside.reason == "beyond 4 times the longest measured N"


def test_one_block_at_one_length_leaves_the_formula_no_interval() -> None:
    rows = [timed(n, [1e-6 * n * n] * (1 if n == 512 else 6)) for n in LENGTHS]
    found = growth.growth(rows, "x")
    assert not found.reason
    assert found.per_pair_ms.value == pytest.approx(1e-6)
    assert isnan(found.per_pair_ms.low)
    assert found.crossover is None
    assert isfinite(found.at_longest.low)


def test_times_that_follow_no_such_formula_are_recognized() -> None:
    found = grown({n: 1e-6 * n * n * (4 if n > 1024 else 1) for n in LENGTHS})
    assert not found.describes
    assert found.worst[1] > 1.15
    assert found.exponents[3].value == pytest.approx(log(16 * 4) / log(4), rel=0.02)


@pytest.mark.parametrize("units", [[1.0], [1.0, 30.0], [1e-9, 1e9, 1.0]])
def test_extreme_times_give_finite_numbers(units: list[float]) -> None:
    found = growth.growth([timed(n, [unit * n for unit in units]) for n in LENGTHS], "x")
    terms = found.constant_ms, found.per_token_ms, found.per_pair_ms
    assert all(isfinite(one.value) for one in terms)
    assert found.at_longest.value == pytest.approx(1)
