"""reports/cards/devices.py: the devices that differ most, and each case on both."""

from pathlib import Path

from attnbench.reports.cards import devices
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.elements import Card, DotPlot
from tests.reports.fake_copies import copies_run, gpu
from tests.reports.fake_runs import quickstart

TWO = (gpu(1), gpu(2, "node2"))


def card_of(run: Path) -> Card | None:
    read = [read_run(run)]
    return devices.card(frame(read), run_meta(read))


def test_the_mean_over_all_cases_comes_first_and_then_the_cases(tmp_path: Path) -> None:
    card = card_of(copies_run(tmp_path, TWO, (1.0, 1.06)))
    assert card is not None
    assert isinstance(card.picture, DotPlot)
    first, *cases = card.picture.rows
    assert (first.group, first.label) == ("all cases", "mean")
    assert first.dot is not None
    assert first.dot.word == "more"
    assert first.dot.low is not None
    assert 1.03 < first.dot.low < 1.06
    assert len(cases) == devices.MOST_DOTS
    names = [row.group for row in cases]
    assert sorted(names, key=names.index) == names  # rows of a backend follow each other
    assert "Device-to-device spread: 5.47 % (4.66 to 6.30 %)." in card.sentence
    assert "6 more cases are under Between devices." in card.note


def test_without_two_devices_there_is_no_card(tmp_path: Path) -> None:
    assert card_of(copies_run(tmp_path / "a", (gpu(1), gpu(1)), (1.0, 1.1))) is None
    assert card_of(quickstart(tmp_path / "b", lengths=(128, 256))) is None
