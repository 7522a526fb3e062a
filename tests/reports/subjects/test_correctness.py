"""reports/subjects/correctness.py and the badge: only exact cases are checked."""

from pathlib import Path

from attnbench.reports.data.read import read_run
from attnbench.reports.data.row_groups import Row
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.elements import Badge
from attnbench.reports.subjects import correctness
from attnbench.reports.subjects.summary import badges
from tests.made_runs import inexact
from tests.reports.rendering import blocks_of, rows_of, sentences, tables_of


def correctness_badge(run: Path, rows: list[Row]) -> Badge:
    found = {one.label: one for one in badges(rows, run_meta([read_run(run)]))}
    return found["correctness"]


def test_the_badge_and_section_speak_of_exact_cases(tmp_path: Path) -> None:
    run = inexact(tmp_path)
    badge = correctness_badge(run, rows_of(run))
    assert badge.state == "good"
    assert "20 of 30 timed cases claim no exact result" in badge.text
    blocks = blocks_of(correctness, run)
    text = "20 cases of linformer, linformer:64, performer and rnn are exempt"
    assert any(text in sentence for sentence in sentences(blocks))
    table, *_ = tables_of(blocks)
    assert [line[0] for line in table.rows] == ["fused", "sdpa"]
    badge = correctness_badge(run, [one for one in rows_of(run) if one["backend"] == "rnn"])
    assert (badge.state, badge.text) == ("unknown", "No timed case is exact attention.")
