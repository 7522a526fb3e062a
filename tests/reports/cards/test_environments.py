"""reports/cards/environments.py: each case in the other environment, worst first."""

from pathlib import Path

from attnbench.reports.cards import environments
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.elements import Card, DotPlot
from tests.reports.fake_pairs import two_environments
from tests.reports.fake_runs import case, problem, quickstart

PLANNED = [
    case(backend, problem(n)) for n in (256, 512, 1024) for backend in ("naive", "fused", "sdpa")
]


def card_of(run: Path) -> Card | None:
    read = [read_run(run)]
    return environments.card(frame(read), run_meta(read))


def test_the_slower_cases_come_first_with_their_intervals(tmp_path: Path) -> None:
    card = card_of(two_environments(tmp_path, {"naive": 1.5}, PLANNED))
    assert card is not None
    assert isinstance(card.picture, DotPlot)
    rows = card.picture.rows
    assert len(rows) == len(PLANNED)
    assert all(row.group == "new" and row.dot is not None for row in rows)
    first = rows[0].dot
    assert first is not None
    assert first.word == "more"
    assert first.low is not None
    assert first.low > 1
    assert rows[0].label.startswith("naive at N")
    assert card.picture.band_ratio == 0.03
    assert "slower in 3" in card.sentence


def test_one_environment_has_no_card(tmp_path: Path) -> None:
    assert card_of(quickstart(tmp_path, lengths=(128, 256))) is None
