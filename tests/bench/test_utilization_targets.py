"""Whether watching disturbs what is timed: latencies of runs with all probes and without, taken in
pairs, until their ratio is known well enough to tell. One to five minutes.
"""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t

from attnbench.harness.stats.intervals import latency_interval
from tests.bench.conftest import rows_of

LEAST_PAIRS, MOST_PAIRS = 4, 12
MARGIN = math.log(1.1)
SHAPE = (
    "run --backends sdpa --batch 1 --seq-len 256 --d-model 256 --heads 4 --plan quick --threads 1"
)
WITHOUT, WATCHED = "measure=[latency]", "measure=[latency,utilization,energy,kernels]"


def latency_ms(out: Path, measure: str) -> float:
    (row,) = rows_of(SHAPE, "--set", measure, "--set", "plan.window_s=1", out=out)
    return latency_interval(row["block_ms"]).value


def test_probes_leave_the_latency_as_it_is(tmp_path: Path) -> None:
    """The interval lies within 10 % of 1. A wide one, which also includes 1, decides nothing."""
    logs: list[float] = []
    low, high = -math.inf, math.inf
    while len(logs) < LEAST_PAIRS or (len(logs) < MOST_PAIRS and high - low > MARGIN):
        order = (WITHOUT, WATCHED) if len(logs) % 2 else (WATCHED, WITHOUT)
        found = {measure: latency_ms(tmp_path, measure) for measure in order}
        logs.append(math.log(found[WATCHED] / found[WITHOUT]))
        if len(logs) > 1:
            half = t.ppf(0.975, len(logs) - 1) * np.std(logs, ddof=1) / math.sqrt(len(logs))
            low, high = np.mean(logs) - half, np.mean(logs) + half
    told = f"{math.exp(low):.3f} to {math.exp(high):.3f} after {len(logs)} pairs"
    print(told)
    if not (low >= -MARGIN and high <= MARGIN) and low <= 0 <= high:
        pytest.skip(f"this machine is too noisy to tell: {told}")
    assert low >= -MARGIN, told
    assert high <= MARGIN, told
