"""How good the predicted walls are, and how long finding them takes, against their targets. `make bench` runs these."""

import json
import subprocess
from pathlib import Path

from tests.conftest import command_line, environment


def test_walls_under_1_gib_are_predicted_within_2_percent_and_found_within_10_minutes(benchmark, tmp_path):
    runs: list[Path] = []

    def call():
        shape = ("--batch", "1", "--d-model", "512", "--heads", "8", "--dtype", "fp32", "--memory-gib", "1", "--device", "cpu")
        done = subprocess.run(
            command_line("wall", "--backends", "naive,fused,sdpa", *shape, "--out", tmp_path, "--quiet"),
            env={**environment(), "OMP_NUM_THREADS": "2"},
            capture_output=True,
            text=True,
            check=True,
        )
        runs.append(Path(done.stdout.strip()))

    benchmark.pedantic(call, rounds=1)
    rows = {row["backend"]: row for row in map(json.loads, (runs[-1] / "rows.jsonl").read_text().splitlines())}
    for backend in ("naive", "fused"):
        row = rows[backend]
        off_ratio = row["predicted_seq_len"] / row["seq_len_low"] - 1
        benchmark.extra_info[backend] = off_ratio
        assert row["limited_by"] == "memory"
        assert abs(off_ratio) <= 0.02
    assert rows["sdpa"]["limited_by"] in ("memory", "time")
    assert benchmark.stats.stats.median <= 600
