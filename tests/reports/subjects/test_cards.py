"""reports/subjects: the cards of several runs are grouped by question, and none is lost."""

import re
from pathlib import Path

from attnbench.reports.data.run_meta import by_question
from attnbench.reports.elements import Card
from attnbench.reports.pages.report import open_report
from tests.made_runs import decode, pruning, run_of, training
from tests.reports.fake_claims import pruned
from tests.reports.rendering import page_of, rows_and_meta


def cards_of(*runs: Path) -> list[Card]:
    return list(open_report(runs).cards)


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
    _, meta = rows_and_meta(*runs)
    assert [len(together) for together in by_question(meta).values()] == [2]
    assert not any(card.title.endswith(": training") for card in cards_of(*runs))


def test_claims_of_several_questions_are_one_answer_above_the_others(tmp_path: Path) -> None:
    layers = run_of(tmp_path, pruned(8, 8.0, 800), pruned(1, 5.0, 600), name="claims_layer")
    found = cards_of(pruning(tmp_path), decode(tmp_path), layers)
    assert [card.name for card in found].count("claims") == 1
    assert not any(card.name.startswith("claims-") for card in found)
    first = found[0]
    assert (first.name, first.title) == ("claims", "Verdicts on the claims")
    assert first.question == "Which textbook claims about attention hold here?"
    assert "What does decode cost?" in {card.question for card in found[1:]}
    assert [row[:2] for row in first.picture.texts] == [("C14", "refuted")]


def test_a_page_of_claims_opens_with_the_verdicts_and_folds_the_other_cards(tmp_path: Path) -> None:
    made = (pruned(8, 8.0, 800), pruned(1, 5.0, 600))
    page = page_of(*(run_of(tmp_path, *made, name=f"claims_{one}") for one in ("layer", "more")))
    places = [page.index(f'id="card-{name}"') for name in ("claims", "fastest")]
    folds = [one.start() for one in re.finditer('<details class="cards">|</section>', page)]
    assert places[0] < folds[0] < places[1]
    before = max(at for at in folds if at < places[1])
    assert page[before:].startswith("<details")
