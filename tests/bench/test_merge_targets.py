"""Merging shards: how much memory it takes, and that nothing is lost on the way."""

import subprocess
import sys
from pathlib import Path

from attnbench.harness.rows.run_files import read_rows
from tests.conftest import ROOT, environment
from tests.fakes.shard_runs import scenario, write_shard

SHARDS = 40
MOST_MIB = 300
PROGRAM = """
import resource, sys
from pathlib import Path
from attnbench.harness.fleet.merge import merge
found = merge([Path(run) for run in sys.argv[2:]], Path(sys.argv[1]), Path("unused"), ["merge"])
print(len(found.missing), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
"""


def test_forty_shards_of_four_thousand_cases_take_little_memory(tmp_path: Path) -> None:
    lengths = [64 * number for number in range(1, 1001)]
    of = scenario(
        grid={"seq_len": lengths, "d_model": 64, "heads": [1, 2]},
        limits={"memory_gib": 0.5, "max_cases": 4000},
    )
    runs = [write_shard(tmp_path, f"{number}/{SHARDS}", of=of) for number in range(1, SHARDS + 1)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "whole"), *map(str, runs)],
        env=environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    missing, peak_mib = map(int, done.stdout.split())
    assert missing == 0
    assert sum(1 for _ in read_rows(tmp_path / "whole")) == 4000
    assert peak_mib <= MOST_MIB
