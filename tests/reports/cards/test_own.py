"""The card of a backend of the reader's own is the first one."""

from pathlib import Path
from random import Random

from attnbench.reports.elements import Table
from attnbench.reports.pages.report import open_report
from tests.reports.analysis.test_own_backends import MINE, run_of
from tests.reports.fake_pairs import timed
from tests.reports.fake_runs import case, problem, write_run


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


def test_there_is_none_without_such_a_backend(tmp_path: Path) -> None:
    planned = [case(name, problem(256)) for name in ("fused", "sdpa")]
    rows = [timed(one, 10.0, Random(1)) for one in planned]
    cards = open_report([write_run(tmp_path, planned, rows)]).cards
    assert "own" not in {card.name for card in cards}


def test_several_are_told_apart(tmp_path: Path) -> None:
    planned = [case(name, problem(256)) for name in ("a@mine", "b@mine", "sdpa")]
    rows = [timed(one, 10.0, Random(1)) for one in planned]
    card = open_report([write_run(tmp_path, planned, rows)]).cards[0]
    assert isinstance(card.picture, Table)
    assert card.title == "Your backends"
    assert [line[0] for line in card.picture.rows] == ["a@mine", "b@mine"]
