"""reports/cards/contrast.py: the dots of what a scenario contrasts."""

from pathlib import Path

from attnbench.reports.cards import contrast
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.elements import Card, DotPlot
from tests.made_runs import made, problem, run_of


def card_of(*runs: Path) -> Card | None:
    read = [read_run(run) for run in runs]
    return contrast.card(frame(read), run_meta(read))


def dots(card: Card | None) -> DotPlot:
    assert card is not None
    assert isinstance(card.picture, DotPlot)
    return card.picture


def test_disturbed_times_of_several_processes_are_undecided_and_the_sentence_says_why(
    tmp_path: Path,
) -> None:
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
    assert card is not None
    assert ", undecided" in card.sentence
    assert card.sentence.endswith("; other work disturbed most blocks.")
    assert card.note.endswith(" 1 more problem is under Contrasts.")


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
    rows = dots(card_of(run)).rows
    naive = next(row for row in rows if (row.group, row.label) == ("Time", "naive"))
    assert naive.dot is None
    assert naive.missing == "out of memory with padding mask"
