"""reports/cards/contrast.py: the dots of what a scenario contrasts."""

from pathlib import Path

from attnbench.reports.cards import contrast
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.elements import Card
from tests.made_runs import made, problem, run_of


def card_of(*runs: Path) -> Card | None:
    read = [read_run(run) for run in runs]
    return contrast.card(frame(read), run_meta(read))


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
