"""reports/cards/contrast.py: the dots of what a scenario contrasts."""

from pathlib import Path

from attnbench.reports.cards import contrast
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.elements import Card, DotPlot
from tests.reports.fake_contrasts import decode, pruning, run_of, timed, training
from tests.reports.fake_runs import problem, quickstart


def card_of(*runs: Path) -> Card | None:
    read = [read_run(run) for run in runs]
    return contrast.card(frame(read), run_meta(read))


def dots(card: Card | None) -> DotPlot:
    assert card is not None
    assert isinstance(card.picture, DotPlot)
    return card.picture


def test_training_has_a_dot_per_backend_scope_and_cost(tmp_path: Path) -> None:
    card = card_of(training(tmp_path))
    picture = dots(card)
    assert [(row.group, row.remark, row.label) for row in picture.rows[:5]] == [
        ("Time", "in the core", "naive"),
        ("Time", "in the core", "fused"),
        ("Peak memory", "in the core", "naive"),
        ("Peak memory", "in the core", "fused"),
        ("Time", "in the layer", "naive"),
    ]
    assert len(picture.rows) == len(picture.table.rows) == 8
    time, memory = picture.rows[0].dot, picture.rows[2].dot
    assert time is not None
    assert time.low is not None
    assert time.high is not None
    assert time.low < 3 < time.high
    assert time.word == "more"
    assert memory is not None
    assert (memory.ratio, memory.low, memory.word) == (2, None, "more")
    assert card is not None
    assert card.sentence.startswith("forward+backward against forward")
    assert card.note == (
        "Counted: FLOPs × 1.00 and exponentials × 1.00. Times are paired block by block."
        " 2 more problems are under Contrasts."
    )


def test_disturbed_times_of_several_processes_are_undecided_and_the_sentence_says_why(
    tmp_path: Path,
) -> None:
    run = run_of(
        tmp_path,
        *(
            timed("fused", problem(n, mask=mask), ms, contended_blocks=99)
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
            timed(backend, problem(1024, mask=mask), ms)
            for backend, times in (("fused", (1.0, 2.0)), ("naive", (1.0, None)))
            for mask, ms in zip(("none", "padding"), times, strict=True)
        ),
        contrast=("mask",),
    )
    rows = dots(card_of(run)).rows
    naive = next(row for row in rows if (row.group, row.label) == ("Time", "naive"))
    assert naive.dot is None
    assert naive.missing == "out of memory with padding mask"


def test_only_runs_whose_question_is_a_contrast_have_the_card(tmp_path: Path) -> None:
    assert card_of(decode(tmp_path / "a")) is not None
    assert card_of(pruning(tmp_path / "b")) is not None
    assert card_of(quickstart(tmp_path / "c", lengths=(128, 256))) is None
    unasked = run_of(
        tmp_path / "d",
        timed("fused", problem(1024), 1.0),
        timed("fused", problem(1024, mask="padding"), 2.0),
    )
    assert card_of(unasked) is None


def test_an_empty_run_has_no_card(tmp_path: Path) -> None:
    assert card_of(run_of(tmp_path, contrast=("mask",))) is None
