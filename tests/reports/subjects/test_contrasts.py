"""reports/subjects/contrasts.py: the setting that a scenario asks about."""

from pathlib import Path

from attnbench.reports.elements import Card, DotPlot
from attnbench.reports.subjects import contrasts
from tests.made_runs import made, problem, run_of
from tests.reports.rendering import subject_of


def card_of(*runs: Path) -> Card:
    card = subject_of(contrasts, *runs).card
    assert card is not None
    return card


def test_disturbed_times_of_several_processes_are_undecided(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        *(
            made("fused", problem(n, mask=mask), ms, contended_blocks=99)
            for n in (512, 1024)
            for mask, ms in (("none", 1.0), ("padding", 3.0))
        ),
        contrast=("mask",),
    )
    card = card_of(run)
    assert "Time: undecided for fused (×3.0" in card.sentence
    assert "Undecided: other work disturbed most blocks." in card.note


def test_a_setting_that_failed_is_named_in_place_of_its_dot(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        *(
            made(backend, problem(1024, mask=mask), ms)
            for backend, times in (("fused", (1.0, 2.0)), ("naive", (1.0, None)))
            for mask, ms in zip(("none", "padding"), times, strict=True)
        ),
        contrast=("mask",),
    )
    picture = card_of(run).picture
    assert isinstance(picture, DotPlot)
    naive = next(row for row in picture.rows if (row.group, row.label) == ("Time", "naive"))
    assert naive.dot is None
    assert naive.missing == "out of memory with padding mask"
