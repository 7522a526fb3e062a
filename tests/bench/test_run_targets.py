"""How long whole runs take on two idle cores, and how good predicted walls are, against their
targets. `make bench` runs these.
"""

import time
from pathlib import Path

import pytest

from tests.bench.conftest import rows_of


@pytest.mark.parametrize(("scenario", "most_s"), [("quickstart", 60), ("what_heads_learn", 600)])
def test_a_shipped_run_takes_its_time_at_most(tmp_path: Path, scenario: str, most_s: float) -> None:
    begun_s = time.monotonic()
    rows = rows_of(f"run {scenario}", out=tmp_path)
    assert time.monotonic() - begun_s <= most_s
    assert {row["status"] for row in rows} <= {"ok", "predicted_oom"}


def test_walls_under_1_gib_are_predicted_within_2_percent_and_found_within_10_minutes(tmp_path):
    command = (
        "wall --backends naive,fused,sdpa --batch 1 --d-model 512 --heads 8 --dtype fp32"
        " --memory-gib 1"
    )
    begun_s = time.monotonic()
    rows = {row["backend"]: row for row in rows_of(command, out=tmp_path)}
    took_s = time.monotonic() - begun_s
    for backend in ("naive", "fused"):
        row = rows[backend]
        off_ratio = row["predicted_seq_len"] / row["seq_len_low"] - 1
        assert row["limited_by"] == "memory"
        assert abs(off_ratio) <= 0.02
    assert rows["sdpa"]["limited_by"] in ("memory", "time")
    assert took_s <= 600
