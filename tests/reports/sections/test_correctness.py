"""reports/sections/correctness.py and the badge: only exact cases are checked."""

from pathlib import Path

from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.elements import Block, Table, Text
from attnbench.reports.sections import correctness
from attnbench.reports.sections._badges import badges
from tests.reports.fake_inexact import inexact
from tests.reports.rendering import blocks_of, rows_of


def said(blocks: list[Block]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, Text))


def test_the_gate_s_badge_and_section_speak_of_exact_cases(tmp_path: Path) -> None:
    run = inexact(tmp_path)
    (badge,) = (
        one for one in badges(rows_of(run), run_meta([read_run(run)])) if one.label == "correctness"
    )
    assert badge.state == "good"
    assert (
        badge.text
        == "Every timed exact case was first checked against a float64 reference; 20 of 30 timed cases"
        " claim no exact result."
    )
    blocks = blocks_of(correctness, run)
    assert "20 cases of linformer, linformer:64, performer and rnn are exempt" in said(blocks)
    table = next(block for block in blocks if isinstance(block, Table))
    assert [line[0] for line in table.rows] == ["fused", "sdpa"]
    (badge,) = (
        one
        for one in badges(
            [one for one in rows_of(run) if one["backend"] == "rnn"], run_meta([read_run(run)])
        )
        if one.label == "correctness"
    )
    assert (badge.state, badge.text) == ("unknown", "No timed case is exact attention.")
