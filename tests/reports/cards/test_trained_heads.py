"""reports/cards/trained_heads.py: how many heads, on the first screen."""

from pathlib import Path
from typing import Any

from attnbench.reports.cards import trained_heads
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.elements import Card, Table
from tests.reports.fake_trainings import CLEAR, trainings, with_trainings


def card_of(parent: Path, findings: list[Any]) -> Card | None:
    read = [read_run(with_trainings(parent, findings))]
    return trained_heads.card(frame(read), run_meta(read))


def test_the_sentence_names_the_fewest_heads_of_each_task(tmp_path: Path) -> None:
    card = card_of(tmp_path, CLEAR)
    assert card is not None
    assert card.sentence == ("1 head is enough for recall; 8 heads are enough for six_relations.")
    assert isinstance(card.picture, Table)
    assert card.picture.rows[1] == (
        "six_relations",
        "8 heads",
        "98.6 %",
        "5.0 %",
        "98.6 % (8)",
        "× 8.00, × 8.00",
        "× 4.50, × 4.50",
    )
    assert "large ones" in card.note


def test_too_many_heads_are_named(tmp_path: Path) -> None:
    card = card_of(tmp_path, trainings({"text": {1: [0.9] * 5, 64: [0.5] * 5}}))
    assert card is not None
    assert card.sentence.endswith("64 heads are worse than the best for text.")


def test_one_number_of_heads_answers_nothing(tmp_path: Path) -> None:
    assert card_of(tmp_path / "a", trainings({"text": {4: [0.9] * 5}})) is None
    assert card_of(tmp_path / "b", []) is None
