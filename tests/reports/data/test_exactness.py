"""reports/data/exactness.py: what an inexact backend's result is; its rows in the table."""

from pathlib import Path

import pytest

from attnbench.reports.data.exactness import exactness_note
from attnbench.reports.data.load import load
from attnbench.reports.data.read import BadRun
from tests.made_runs import case, inexact, problem, row, write_run


def test_the_note_describes_the_result_of_an_inexact_backend() -> None:
    assert (
        exactness_note({})
        == exactness_note({"exactness": "exact", "error_l2_ratio": 1e-7})
        == exactness_note({"exactness": None})
        == ""
    )
    assert (
        exactness_note({"exactness": "approximate", "error_l2_ratio": 34.2})
        == "approximate, error 3\u202f400 %"
    )
    assert exactness_note({"exactness": "approximate", "error_l2_ratio": None}) == "approximate"
    assert exactness_note({"exactness": "other", "error_l2_ratio": None}) == "not attention"


def test_only_exact_backends_have_a_rate(tmp_path: Path) -> None:
    table = load(inexact(tmp_path))
    known = table.groupby("exactness")["achieved_flops_per_s"].agg(
        lambda column: column.notna().all() if column.notna().any() else None
    )
    assert known["exact"]
    assert known.isna()["approximate"]
    assert known.isna()["other"]


def test_old_rows_are_exact_and_unknown_kinds_are_refused(tmp_path: Path) -> None:
    planned = case("fused", problem(128))
    old = write_run(tmp_path / "old", [planned], [row(planned)])
    assert "exactness" not in (old / "rows.jsonl").read_text()
    assert (load(old)["latency_ms"].notna() & load(old)["achieved_flops_per_s"].notna()).all()
    bad = write_run(tmp_path / "bad", [planned], [row(planned, exactness="nearly")])
    with pytest.raises(
        BadRun,
        match=r"rows\.jsonl:1: exactness: found 'nearly', wanted .*exact.*approximate.*other",
    ):
        load(bad)
