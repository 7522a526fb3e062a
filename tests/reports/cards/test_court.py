"""reports/cards/court.py: a court is not ranked."""

from pathlib import Path

from attnbench.reports.cards import cards
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from tests.reports.fake_court import fake_court
from tests.reports.fake_runs import quickstart


def names(*runs: Path) -> list[str]:
    read = [read_run(run) for run in runs]
    return [card.name for card in cards(frame(read), run_meta(read))]


def test_it_is_the_only_card_of_a_court_and_on_no_other_page(tmp_path: Path) -> None:
    assert names(fake_court(tmp_path)) == ["court"]
    assert "court" not in names(quickstart(tmp_path / "other", lengths=(128, 256)))
