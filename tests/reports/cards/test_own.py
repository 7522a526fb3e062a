"""The card of a backend of the reader's own is the first one."""

from pathlib import Path

from attnbench.reports.elements import Table
from attnbench.reports.pages.report import open_report
from tests.reports.analysis.test_own_backends import MINE, run_of


def test_it_stands_first_with_each_case_and_its_ratio(tmp_path: Path) -> None:
    wrong = {"status": "incorrect", "reason": "12 times as far from the exact result"}
    run = run_of(tmp_path, {256: wrong, 512: {"ms": 20.0}})
    card = open_report([run]).cards[0]
    assert (card.name, card.title) == ("own", "Your backend")
    assert card.sentence.startswith(f"{MINE} is wrong in 1 of 2 cases: 12 times as far")
    assert isinstance(card.picture, Table)
    first, second = card.picture.rows
    assert first == ("N\xa0=\xa0256", "wrong result", "")
    assert second[-1].endswith(", sdpa")
    assert card.picture.failed == {(0, 1)}
