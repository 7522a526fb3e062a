"""reports/data/exactness.py: what an inexact backend's result is; its rows in the table."""

from pathlib import Path

import pytest

from attnbench.reports.data.exactness import note
from attnbench.reports.data.load import load
from attnbench.reports.data.read import BadRun
from tests.reports.fake_inexact import inexact
from tests.reports.fake_runs import case, problem, row, write_run


def test_a_note_says_what_a_row_is() -> None:
    assert (
        note({})
        == note({"exactness": "exact", "error_l2_ratio": 1e-7})
        == note({"exactness": None})
        == ""
    )
    assert note({"exactness": "approximate", "error_l2_ratio": 34.2}) == "approximate, error 3400 %"
    assert note({"exactness": "approximate", "error_l2_ratio": None}) == "approximate"
    assert note({"exactness": "other", "error_l2_ratio": None}) == "not attention"


def test_a_rate_is_that_of_work_that_was_done(tmp_path: Path) -> None:
    table = load(inexact(tmp_path))
    known = table.groupby("exactness")["achieved_flops_per_s"].agg(
        lambda column: column.notna().all() if column.notna().any() else None
    )
    assert known["exact"]
    assert known.isna()["approximate"]
    assert known.isna()["other"]


def test_rows_of_before_are_exact_and_other_words_are_refused(tmp_path: Path) -> None:
    planned = case("fused", problem(128))
    old = write_run(tmp_path / "old", [planned], [row(planned)])
    assert "exactness" not in (old / "rows.jsonl").read_text()
    assert (load(old)["latency_ms"].notna() & load(old)["achieved_flops_per_s"].notna()).all()
    bad = write_run(tmp_path / "bad", [planned], [row(planned, exactness="nearly")])
    with pytest.raises(
        BadRun,
        match=r"rows\.jsonl:1: exactness: found 'nearly', wanted one of exact, approximate, other",
    ):
        load(bad)
