"""reports/subjects/wall.py: the search for the longest N, and peak bytes over N."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.rows.run_files import BadRun
from attnbench.reports.data.run_meta import read_run
from attnbench.reports.subjects import wall as subject
from tests.made_runs import GIB, problem, read_rows, write_rows, write_run
from tests.reports.rendering import page_of, text_of


def wall(backend: str, **changes: Any) -> dict[str, Any]:
    """As run.json plans it."""
    name = f"wall-{backend}-b1-d512-h{changes.get('heads', 8)}-fp32-forward-core"
    return {"case": name, "backend": backend, **problem(1), **changes, "kv_seq_len": None} | {
        "seq_len": None
    }


def wall_row(
    planned: dict[str, Any], low: int | None, high: int | None, **changes: Any
) -> dict[str, Any]:
    ends = [
        {"seq_len": n, "status": status, "reason": "", "spent_s": 1.5}
        for n, status in ((low, "ok"), (high, "oom"))
        if n
    ]
    found = {"seq_len_low": low, "seq_len_high": high, "limited_by": "memory", "probes": ends}
    expected = {"predicted_seq_len": 4048, "predicted_source": "formula", "predicted_reason": ""}
    head = {"schema": 1, "kind": "wall", "attempt": 1, "log_tail": None}
    spent = {"memory_bytes": GIB, "started_utc": None, "spent_s": 9.5}
    row = head | planned | {"status": "ok", "reason": ""} | expected | found | spent | changes
    del row["seq_len"]
    return row


def planned(walls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in one.items() if key not in ("seq_len", "device")}
        for one in walls
    ]


def only_walls(parent: Path) -> Path:
    walls = [wall(name) for name in ("fused", "naive", "sdpa", "sdpa:cudnn", "hangs")]
    unknown = {"predicted_seq_len": None, "predicted_source": None}
    refused = {"status": "unsupported", "reason": "for CUDA only", "limited_by": None}
    rows = [
        wall_row(walls[0], 4038, 4048),
        wall_row(walls[1], 11_000, 11_020, predicted_reason="no formula at hand", **unknown),
        wall_row(walls[2], 45_085, None, limited_by="time", predicted_seq_len=130_418),
        wall_row(walls[3], None, None, **unknown, **refused),
    ]
    return write_run(parent, [], rows, walls=planned(walls))


def test_the_last_row_of_a_wall_counts_and_what_has_none_was_not_reached(tmp_path: Path) -> None:
    run = only_walls(tmp_path)
    rows = read_rows(run)
    write_rows(run, [*rows, rows[0] | {"attempt": 2, "seq_len_low": 4040}])
    found = read_run(run)
    assert [(one["backend"], one["attempt"]) for one in found.walls] == [
        ("fused", 2),
        ("naive", 1),
        ("sdpa", 1),
        ("sdpa:cudnn", 1),
    ]
    assert [one["backend"] for one in found.missing_walls] == ["hangs"]
    assert found.notes == []
    assert "hangs : not reached" in text_of(page_of(run))


BY_TIME = {"limited_by": "time"}
BOUND = {"predicted_source": "nearest"}


@pytest.mark.parametrize(
    ("low", "high", "changes", "n", "how"),
    [
        (4038, 4050, {}, 4038, "tried"),
        (64, None, BY_TIME, 4048, "formula"),
        (64, None, BY_TIME | BOUND, 4048, "at least"),
        (64, 4000, BY_TIME, 64, "at least"),  # a call contradicts the formula
        (4100, None, BY_TIME, 4100, "at least"),
        (64, None, {"limited_by": None, "status": "interrupted", "reason": "?"}, 4048, "formula"),
        (64, 128, {"limited_by": "backend"}, 64, "tried"),
        (None, None, {"limited_by": None, "status": "error", "reason": "?"}, None, "tried"),
    ],
)
def test_the_answer_is_the_formula_s_unless_a_call_stands_against_it(
    low: int | None, high: int | None, changes: dict[str, Any], n: int | None, how: str
) -> None:
    found = subject.longest(wall_row(wall("fused"), low, high, **changes))
    assert (found.n, found.how) == (n, how)


def test_a_broken_wall_or_plan_of_walls_is_named(tmp_path: Path) -> None:
    walls = [wall("fused")]
    rows = [wall_row(walls[0], 4038, 4048, probes=[{"seq_len": 3}])]
    broken = write_run(tmp_path / "a", [], rows, walls=planned(walls))
    with pytest.raises(BadRun, match=r"probes\[0\].status: found nothing"):
        read_run(broken)
    with pytest.raises(BadRun, match="walls"):
        read_run(write_run(tmp_path / "b", [], [], walls=[{"case": "a"}]))
