"""How long comparing two large runs takes, and how much memory, against its targets. `make bench`
runs these.
"""

import json
import resource
import subprocess

import pytest

from tests.conftest import command_line, environment
from tests.made_runs import case, fake_run, problem

ROWS = 20_000
MOST_S, MOST_BYTES = 10, 10**9


@pytest.mark.parametrize("shape", ["table", "json"])
def test_two_runs_of_20_000_rows_are_compared_within_10_s_and_1_gb(benchmark, tmp_path, shape):
    cases = [
        case(backend, problem(n))
        for n in range(1, ROWS // 4 + 1)
        for backend in ("naive", "fused", "sdpa", "sdpa:math")
    ]
    base, new = (fake_run(tmp_path, seed, planned=cases) for seed in (1, 2))
    command = command_line(
        "compare", base, new, "--gate", "latency: 5%, peak_bytes: 0%", "--format", shape
    )

    def compared():
        return subprocess.run(
            command, env=environment(), capture_output=True, text=True, check=True
        ).stdout

    text = benchmark.pedantic(compared, rounds=1)
    peak_bytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    benchmark.extra_info.update(peak_bytes=peak_bytes)
    assert (
        f"of {ROWS} cases" in text
        if shape == "table"
        else len(json.loads(text)["cases"]) == 2 * ROWS
    )
    assert benchmark.stats.stats.median <= MOST_S
    assert peak_bytes <= MOST_BYTES
