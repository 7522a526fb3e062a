"""reports/subjects/fastest.py: ties as ties, the winner with its time, the next with its ratio."""

from pathlib import Path

from attnbench.reports.elements import Card, Table
from attnbench.reports.subjects import fastest
from tests.made_runs import grid, row, write_run
from tests.reports.rendering import subject_of


def fastest_card(*runs: Path) -> Card:
    found = subject_of(fastest, *runs).card
    assert found is not None
    return found


def table(found: Card) -> Table:
    assert isinstance(found.picture, Table)
    return found.picture


def test_what_cannot_be_told_apart_is_a_tie(tmp_path: Path) -> None:
    cases = grid(("other", "fused"), (256, 512, 1024))  # equally fast
    run = write_run(tmp_path, cases, [row(one) for one in cases])
    found = fastest_card(run)
    cells = [line[1].partition(" · ")[0] for line in table(found).rows]
    assert set(cells) <= {"tie: fused = other", "tie: other = fused"}
    assert found.sentence.startswith("All 3 problems are ties.")
    two = [one for one in cases if one["seq_len"] > 256]
    run = write_run(tmp_path / "two", two, [row(one) for one in two])
    assert fastest_card(run).sentence.startswith("Both problems are ties.")


def test_a_winner_beside_other_work_is_named_with_it(tmp_path: Path) -> None:
    """Beside ten busy processes on two cores one backend seemed 2,576 times as slow."""
    cases = grid(("fused", "sdpa"), (256, 512))
    blocks = {"fused": [[[100.0]] * 9], "sdpa": [[[1.0]] * 9]}
    rows = [
        row(one, contended_blocks=9, blocks=9, block_ms=blocks[one["backend"]]) for one in cases
    ]
    found = fastest_card(write_run(tmp_path, cases, rows))
    assert found.sentence.endswith(", while other work disturbed most blocks.")
    assert "Other work disturbed most blocks in 2 of the 2 problems" in found.note
    calm = [{**one, "contended_blocks": 0} for one in rows]
    quiet = fastest_card(write_run(tmp_path / "calm", cases, calm))
    assert "other work" not in f"{quiet.sentence}{quiet.note}".lower()
