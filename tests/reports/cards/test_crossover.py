"""reports/cards/crossover.py: from which N on something else beats dense exact attention."""

from pathlib import Path

from attnbench.reports.cards import crossover
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.elements import Card, Figure
from tests.made_runs import inexact


def card_of(run: Path) -> Card | None:
    read = [read_run(run)]
    return crossover.card(frame(read), run_meta(read))


def test_an_output_that_carries_no_information_has_no_line(tmp_path: Path) -> None:
    card = card_of(inexact(tmp_path, cosines={"linformer": 0.004, "linformer:64": 0.0}))
    assert card is not None
    assert isinstance(card.picture, Figure)
    drawn = {series.backend for panel in card.picture.panels for series in panel.series}
    assert "performer" in drawn
    assert not {"linformer", "linformer:64"} & drawn
