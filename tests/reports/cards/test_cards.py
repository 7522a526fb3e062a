"""reports/cards: the cards of several runs are grouped by question, and none is lost."""

from pathlib import Path

from attnbench.reports.cards import cards
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import by_question, run_meta
from attnbench.reports.elements import Card
from tests.reports.fake_contrasts import decode, training


def cards_of(*runs: Path) -> list[Card]:
    read = [read_run(run) for run in runs]
    return cards(frame(read), run_meta(read))


def test_two_questions_have_their_own_cards_one_after_the_other(tmp_path: Path) -> None:
    alone = [[card.title for card in cards_of(run)] for run in both(tmp_path / "alone")]
    found = cards_of(*both(tmp_path / "joint"))
    expected = [
        f"{title}: {scenario}"
        for scenario, titles in zip(("training", "decode"), alone, strict=True)
        for title in titles
    ]
    assert [card.title for card in found] == expected
    assert len({card.name for card in found}) == len(found)
    assert {"contrasts", "contrasts-2", "growth"} <= {card.name for card in found}


def both(parent: Path) -> tuple[Path, Path]:
    return training(parent), decode(parent)


def test_runs_that_ask_the_same_are_one_group(tmp_path: Path) -> None:
    runs = [training(tmp_path / name) for name in "ab"]
    meta = run_meta([read_run(run) for run in runs])
    assert [len(together) for together in by_question(meta).values()] == [2]
    assert not any(card.title.endswith(": training") for card in cards_of(*runs))


def test_an_empty_page_has_no_cards() -> None:
    assert cards(frame([]), {}) == []
