"""How good the predicted walls are, and how long finding them takes, against their targets. `make
bench` runs these.
"""

from tests.bench.conftest import rows_of


def test_walls_under_1_gib_are_predicted_within_2_percent_and_found_within_10_minutes(
    benchmark, tmp_path
):
    command = (
        "wall --backends naive,fused,sdpa --batch 1 --d-model 512 --heads 8 --dtype fp32"
        " --memory-gib 1"
    )
    rows = {
        row["backend"]: row
        for row in benchmark.pedantic(rows_of, args=(command,), kwargs={"out": tmp_path}, rounds=1)
    }
    for backend in ("naive", "fused"):
        row = rows[backend]
        off_ratio = row["predicted_seq_len"] / row["seq_len_low"] - 1
        benchmark.extra_info[backend] = off_ratio
        assert row["limited_by"] == "memory"
        assert abs(off_ratio) <= 0.02
    assert rows["sdpa"]["limited_by"] in ("memory", "time")
    assert benchmark.stats.stats.median <= 600
