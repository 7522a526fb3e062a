"""Whether watching disturbs what is timed: latencies of runs with all probes and without, taken
alternately. About a minute.
"""

import pytest

from attnbench.harness.stats.intervals import latency_interval, ratio_interval
from tests.bench.conftest import rows_of

ROUNDS = 4
SHAPE = "run --backends sdpa --batch 1 --seq-len 256 --d-model 256 --heads 4 --plan quick"
WATCHED = "measure=[latency,utilization,energy,kernels]"


@pytest.fixture(scope="module")
def alternately(tmp_path_factory):
    """The samples of each run, without probes and with them, as [run][block][call]."""
    out = tmp_path_factory.mktemp("probes")
    found: dict[str, list[list[list[float]]]] = {"measure=[latency]": [], WATCHED: []}
    for number in range(ROUNDS):
        for measure in sorted(found, reverse=number % 2 == 1):
            (row,) = rows_of(SHAPE, "--set", measure, "--set", "plan.window_s=1", out=out)
            found[measure].append(row["block_ms"][0])
    return found


def test_probes_leave_the_latency_as_it_is(benchmark, alternately):
    without, with_probes = alternately.values()
    typical = (
        [[[latency_interval([run]).value]] for run in without],
        [[[latency_interval([run]).value]] for run in with_probes],
    )
    interval = benchmark.pedantic(lambda: ratio_interval(typical[1], typical[0]))
    benchmark.extra_info.update(
        ratio=interval.value, low=interval.low, high=interval.high, runs=ROUNDS
    )
    assert interval.low <= 1 <= interval.high
