"""What is said of two backends beside other work, of simulated blocks. `make bench` runs these.

Processor time is the work, but misleads by as much as was measured: by another factor for each
backend (docs/method.md, What one process decides). The clock says whatever the scheduler does.
"""

import math

import numpy as np
import pytest

from attnbench.reports.data.row_groups import Row
from attnbench.reports.judging.pair import PROCESSOR_TIME, time_ratio
from tests.made_runs import case, problem, row

SEEDS = 1000
PROCESSES, BLOCKS = 4, 3
WORK_MS = 5.0
BLOCK_SD = 0.06
MISLEADS_SD = math.log1p(PROCESSOR_TIME.ratio) / 1.96 / math.sqrt(2)
IN_ONE_THREAD = 1.5  # times as far, on the log scale: that of the calling thread
MOST_FALSE, LEAST_COVERED = 0.05, 0.93


def disturbed_row(
    random: np.random.Generator, planned: dict[str, object], work_ms: float, process_sd: float
) -> Row:
    misleads = random.normal(0, MISLEADS_SD)
    blocks, conditions = [], []
    for _ in range(PROCESSES):
        level_ms = work_ms * math.exp(random.normal(0, process_sd))
        works = level_ms * np.exp(random.normal(0, BLOCK_SD, BLOCKS))
        blocks.append([[one * random.uniform(1, 8)] for one in works])
        conditions.append(
            [
                {
                    "processor_ms": 2 * one * math.exp(misleads),
                    "thread_ms": one * math.exp(IN_ONE_THREAD * misleads),
                }
                for one in works
            ]
        )
    count = PROCESSES * BLOCKS
    changes = {"contended_blocks": count, "blocks": count, "latency_ms": 1.0, "session": "one"}
    return row(planned, block_ms=blocks, conditions=conditions, processes=PROCESSES, **changes)


@pytest.mark.parametrize("process_sd", [0.04, 0.1])
@pytest.mark.parametrize(("true_ratio", "least_named"), [(1.0, 0), (1.5, 0.7), (3.0, 0.99)])
def test_beside_other_work_the_faster_is_named_and_equals_are_not(
    true_ratio, least_named, process_sd
):
    named = wrong = covered = 0.0
    first, second = (case(name, problem(512)) for name in ("sdpa", "fused"))
    for seed in range(SEEDS):
        random = np.random.default_rng(seed)
        base = disturbed_row(random, first, WORK_MS, process_sd)
        other = disturbed_row(random, second, true_ratio * WORK_MS, process_sd)
        ratio = time_ratio(other, base)
        assert ratio.by_processor_time
        named += (true_ratio > 1 and ratio.low > 1) / SEEDS
        wrong += (ratio.high < 1 or (true_ratio == 1 and ratio.low > 1)) / SEEDS
        covered += (ratio.low <= true_ratio <= ratio.high) / SEEDS
    print(f"{true_ratio}, {process_sd}: named {named:.1%} wrong {wrong:.1%} covers {covered:.1%}")
    assert named >= least_named
    assert wrong <= MOST_FALSE
    assert covered >= LEAST_COVERED
