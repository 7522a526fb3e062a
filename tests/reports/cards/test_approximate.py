"""reports/cards/approximate.py: one dot per setting, error over time."""

from pathlib import Path

from attnbench.reports.cards import approximate
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.elements import Card, Figure
from tests.made_runs import inexact


def card_of(run: Path) -> Card | None:
    read = [read_run(run)]
    return approximate.card(frame(read), run_meta(read))


def test_an_output_that_carries_no_information_is_no_dot_and_the_note_says_why(
    tmp_path: Path,
) -> None:
    card = card_of(inexact(tmp_path, cosines={"linformer": 0.004, "linformer:64": -0.02}))
    assert card is not None
    assert isinstance(card.picture, Figure)
    assert [one.backend for one in card.picture.panels[0].series] == ["performer"]
    assert "linformer" not in card.sentence
    assert "No trade-off is drawn for linformer and linformer:64: " in card.note
