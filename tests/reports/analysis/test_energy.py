"""reports/analysis/energy.py: joules per call and token, and the interval of a ratio."""

import numpy as np

from attnbench.reports.analysis import energy


def test_the_interval_of_a_ratio_covers_the_truth_in_93_percent_of_runs() -> None:
    from attnbench.harness.stats.intervals import mean_interval

    random, hits = np.random.default_rng(5), 0
    for _ in range(500):
        a, b = (
            mean_interval(list(joules * (1 + random.normal(0, 0.02, 5))), "window")
            for joules in (6e-3, 3e-3)
        )
        found = energy.energy_ratio(a, b)
        assert found is not None
        hits += found.low <= 2 <= found.high
    assert hits / 500 >= 0.93
