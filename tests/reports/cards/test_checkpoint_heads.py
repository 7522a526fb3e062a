"""reports/cards/checkpoint_heads.py: given models on the first screen."""

from pathlib import Path
from typing import Any

from attnbench.reports.cards import checkpoint_heads
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.elements import Card, Table
from tests.reports.fake_checkpoints import looked_at, with_checkpoints


def card_of(parent: Path, findings: list[Any]) -> Card | None:
    read = [read_run(with_checkpoints(parent, findings))]
    return checkpoint_heads.card(frame(read), run_meta(read))


def test_the_sentence_says_how_many_heads_are_missed_and_which_most(tmp_path: Path) -> None:
    card = card_of(tmp_path, [looked_at()])
    assert card is not None
    assert card.sentence == (
        "Of the 4 heads of mine 2 are surely missed, most block 2 head 2: without it the loss rises"
        " by 0.50 nats (0.47 to 0.53)."
    )
    assert isinstance(card.picture, Table)
    assert card.picture.rows == (("mine", "2 of 4", "1", "1"),)


def test_a_model_without_removals_says_why(tmp_path: Path) -> None:
    card = card_of(
        tmp_path,
        [looked_at(single_sequence_loss_nats=None, removal_reason="too many heads")],
    )
    assert card is not None
    assert card.sentence == "Of mine no head was removed: too many heads."
    assert isinstance(card.picture, Table)
    assert card.picture.rows[0][1] == ""


def test_no_model_no_card(tmp_path: Path) -> None:
    assert card_of(tmp_path, []) is None
