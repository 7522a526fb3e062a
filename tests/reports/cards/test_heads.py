"""reports/cards/heads.py: one common N, one word per cell, counts said once."""

from pathlib import Path

from attnbench.reports.cards import heads
from attnbench.reports.elements import Card, DotPlot
from tests.made_runs import grid, quickstart, row, write_run
from tests.reports.rendering import card_of


def heads_card(*runs: Path) -> Card:
    found = card_of(heads, *runs)
    assert found is not None
    return found


def words(found: Card) -> dict[tuple[str, str], str]:
    assert isinstance(found.picture, DotPlot)
    return {
        (one.group, one.label): one.dot.word if one.dot else one.missing
        for one in found.picture.rows
    }


def test_one_process_leaves_the_time_undecided_and_the_note_says_why(tmp_path: Path) -> None:
    found = heads_card(quickstart(tmp_path, lengths=(256, 512, 1024)))
    assert words(found)["Time", "fused"] == "undecided"
    assert "Undecided: the interval allows for" in found.note


def test_the_common_n_is_the_longest_at_which_every_backend_ran_with_both(tmp_path: Path) -> None:
    cases = grid(("fused", "sdpa"), (256, 512, 1024), heads=(1, 8))
    rows = [
        row(one, "oom" if one["backend"] == "fused" and one["seq_len"] == 1024 else "ok")
        for one in cases
    ]
    found = heads_card(write_run(tmp_path, cases, rows))
    assert "N\u00a0=\u00a0512" in found.subtitle


def test_older_rows_have_no_exponentials(tmp_path: Path) -> None:
    cases = grid(("fused", "sdpa"), (256,), heads=(1, 8))
    rows = [{key: v for key, v in row(one).items() if key != "work_exps"} for one in cases]
    found = heads_card(write_run(tmp_path, cases, rows))
    assert not any(group == "Exponentials" for group, _ in words(found))
    assert found.sentence.startswith("Same FLOPs.")
