"""reports/heads: what is told of trainings over seeds."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.heads.findings import TrainedHeads
from attnbench.harness.rows.findings import findings_of
from attnbench.reports.data.run_meta import read_run, run_meta
from attnbench.reports.elements import Figure, Table
from attnbench.reports.heads.subjects.trained_heads import Trained, subject
from attnbench.reports.subjects import Subject
from tests.reports.fake_trainings import training, trainings, with_trainings

NEVER: list[int | None] = [None] * 6


def told(tmp_path: Path, findings: list[Any]) -> Subject:
    return subject([], run_meta([read_run(with_trainings(tmp_path, findings))]))


def of(seeds: list[int | None], **other: Any) -> Trained:
    return Trained("copy", 1, findings_of(TrainedHeads, trainings("copy", {1: seeds}, **other)))


@pytest.mark.parametrize(
    ("seeds", "learn", "steps"),
    [
        ([100] * 6, "6 of 6 seeds", "100"),
        ([100, 200, 300, 400, 500, 600], "6 of 6 seeds", "350 (100 to 600)"),
        ([100, 200, 300, 400, None, None], "4 of 6 seeds", "350 (100 to > 1 000)"),
        ([100, 200, None, None, None, None], "2 of 6 seeds", "> 1 000 (100 to > 1 000)"),
        (NEVER, "0 of 6 seeds", "> 1 000"),
        ([100, 200, 300], "3 of 3 seeds", "200"),  # too few for an interval
    ],
)
def test_a_seed_that_does_not_learn_within_the_limit_took_more_steps(
    seeds: list[int | None], learn: str, steps: str
) -> None:
    """It is neither left out nor taken for 0 or for the limit."""
    found = of(seeds)
    assert (found.learn, found.steps_text().replace("\u202f", " ")) == (learn, steps)


def test_on_a_curve_a_seed_that_has_ended_stays_as_it_ended() -> None:
    found = of([20, 20, 380])  # looks at 20, and at 40 or 400 steps
    assert found.curve("looked_accuracy_ratio") == {20: 0.2, 40: 0.99, 400: 0.99}
    late = of([20, 380, 380])
    assert late.curve("looked_accuracy_ratio") == {20: 0.2, 40: 0.2, 400: 0.99}


def test_the_card_names_the_number_of_heads_with_the_fewest_steps_and_draws_curves(
    tmp_path: Path,
) -> None:
    steps = {8: [100] * 6, 1: [300] * 6, 16: [200] * 6}
    card = told(tmp_path, trainings("copy", steps)).card
    assert card
    assert card.sentence == (
        "The median seed learns copy in 100 steps with 8 heads and in 300 with 1 head."
    )
    assert isinstance(card.picture, Figure)
    (panel,) = card.picture.panels
    assert [one.backend for one in panel.series] == ["1 head", "8 heads", "16 heads"]
    assert isinstance(card.decisions, Table)
    assert card.decisions.texts == (("copy", "300", "100", "200"),)


def test_the_grid_of_rates_is_shown_and_no_training_of_it_counts(tmp_path: Path) -> None:
    tried = [
        training("copy", 1, 1000 + seed, steps, learning_rate=rate, is_tuning=True)
        for rate, steps in ((0.001, None), (0.003, 40))
        for seed in range(3)
    ]
    found = told(tmp_path, [*tried, *trainings("copy", {1: [100] * 6})])
    tables = {one.title: one for one in found.blocks if isinstance(one, Table)}
    (grid,) = (one for title, one in tables.items() if "by learning rate" in title)
    assert grid.columns[1:] == ("0.001", "0.003")
    assert [(one.text, one.strong) for one in grid.cells[0][1:]] == [
        ("> 1\u202f000", False),
        ("40", True),
    ]
    assert tables["Each number of heads at its learning rate"].texts[0][2] == "6 of 6 seeds"


def test_half_of_the_heads_removed_is_told_where_it_was_tried(tmp_path: Path) -> None:
    losses = {"whole": 0.1, "removed_after": 1.2, "removed_during": 0.3}
    fields = {f"{name}_loss_nats": value for name, value in losses.items()}
    some = trainings("copy", {8: [100] * 6}, removed_heads=8, **fields)
    found = told(tmp_path, [*trainings("copy", {1: [200] * 6}), *some])
    (table,) = (one for one in found.blocks if isinstance(one, Table) and "removed" in one.columns)
    (row,) = table.texts
    assert row[:2] == ("copy, 8 heads", "8")
    assert [text.split()[0] for text in row[2:]] == ["0.10", "1.20", "0.30"]


@pytest.mark.parametrize("broken", [{"task": 3}, {"heads": 0}, {"looked_steps": [20]}])
def test_findings_that_lack_something_are_left_out(broken: dict[str, Any]) -> None:
    assert findings_of(TrainedHeads, [training("copy", 1, 0, 100) | broken]) == []


def test_trainings_of_earlier_versions_are_counted_in_a_line(tmp_path: Path) -> None:
    old = [training("recall", 1, seed, None) | {"goal_ratio": None} for seed in range(5)]
    found = told(tmp_path, old)
    assert found.card is None
    assert [str(one) for one in found.blocks if "5 trainings of earlier versions" in str(one)]
