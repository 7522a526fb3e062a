"""reports/subjects/correctness.py and the badge: only exact cases are checked."""

from pathlib import Path

from attnbench.reports.data.row_groups import Row
from attnbench.reports.data.run_meta import Meta
from attnbench.reports.subjects import correctness
from attnbench.reports.subjects.trust import checks
from tests.made_runs import inexact
from tests.reports.rendering import blocks_of, rows_and_meta, tables_of


def badge_of(rows: list[Row], meta: Meta) -> tuple[str, str]:
    return checks(rows, meta)["correctness"]


def test_the_badge_and_section_speak_of_exact_cases(tmp_path: Path) -> None:
    run = inexact(tmp_path)
    rows, meta = rows_and_meta(run)
    assert badge_of(rows, meta)[0] == "good"
    table, *_ = tables_of(blocks_of(correctness, run))
    assert [line[0] for line in table.rows] == ["fused", "sdpa"]
    inexact_rows = [one for one in rows if one["backend"] == "rnn"]
    assert badge_of(inexact_rows, meta) == ("unknown", "No timed case is exact attention.")
