"""reports/heads: what is computed from trainings over seeds."""

from math import inf, isnan
from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.heads.findings import TrainedHeads
from attnbench.harness.rows.findings import findings_of
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.elements import Figure
from attnbench.reports.heads.maps import favourite, tokens_attended
from attnbench.reports.heads.subjects import trained_roles
from attnbench.reports.heads.subjects.trained_heads import subject
from attnbench.reports.heads.trained import TaskResult, results
from attnbench.reports.subjects import Subject
from tests.reports.fake_trainings import (
    N,
    learning,
    roles,
    shifted,
    training,
    trainings,
    with_trainings,
)


def of(accuracies: dict[int, list[float]], **fields: Any) -> TaskResult:
    made = [one | fields for one in trainings({"recall": accuracies})]
    (found,) = results(findings_of(TrainedHeads, made))
    return found


def one_training(**fields: Any) -> TrainedHeads:
    return of({2: [0.9]}, **fields).counts[0].trainings[0]


def learnt(steps: dict[int, list[int | None]], limit: int = 1000) -> TaskResult:
    (found,) = results(findings_of(TrainedHeads, learning("copy", steps, limit)))
    return found


NEVER: list[int | None] = [None] * 6


@pytest.mark.parametrize(
    ("seeds", "share", "steps"),
    [
        ([100] * 6, (1.0, 0.51, 1.0), (100, 100, 100)),
        ([100, 200, 300, 400, 500, 600], (1.0, 0.51, 1.0), (350, 100, 600)),
        ([100, 200, None, None, None, None], (1 / 3, 0.04, 0.80), (inf, 100, inf)),
        ([100, 200, 300, 400, None, None], (2 / 3, 0.20, 0.96), (350, 100, inf)),
        (NEVER, (0.0, 0.0, 0.49), (inf, inf, inf)),
    ],
)
def test_a_seed_that_does_not_learn_within_the_limit_took_more_steps(
    seeds: list[int | None], share: tuple[float, ...], steps: tuple[float, ...]
) -> None:
    """It is neither left out nor taken for 0 or for the limit."""
    one = learnt({1: seeds}).counts[0]
    assert one.share
    assert one.steps
    found = (one.share.value, one.share.low, one.share.high)
    assert found == pytest.approx(share, abs=0.01)
    assert (one.steps.value, one.steps.low, one.steps.high) == steps


def test_few_seeds_have_a_median_and_no_interval() -> None:
    steps = learnt({1: [100, 200, 300]}).counts[0].steps
    assert steps
    assert steps.value == 200
    assert isnan(steps.low)


def test_steps_are_compared_seed_by_seed_and_a_limit_bounds_their_ratio() -> None:
    found = learnt({1: [400, 800, 1200, 400, 800, 1200], 8: [100, 200, 300, 100, 200, 300]}, 2000)
    times = found.counts[0].times_the_steps_of(found.fastest)
    assert found.fastest.heads == 8
    assert times
    assert (times.value, times.low, times.high) == (4, 4, 4)
    censored = learnt({1: NEVER, 8: [100] * 6}).counts
    over, under = (
        one.times_the_steps_of(other) for one, other in (censored, tuple(reversed(censored)))
    )
    assert over
    assert under
    assert (over.value, over.low, over.high) == (inf, 10, inf)
    assert (under.low, under.high) == (0, 0.1)


@pytest.mark.parametrize(
    ("steps", "fastest"),
    [
        ({1: [300] * 6, 8: [100] * 6, 64: [200] * 6}, 8),
        ({1: [100] * 6, 8: [100] * 6}, 1),
        ({1: [100] * 5 + [None], 8: [100] * 6}, 8),  # as fast, and in more seeds
        ({1: [100] * 2 + [None] * 4, 8: [900] * 6}, 8),  # the median seed does not learn
    ],
)
def test_the_number_of_heads_whose_median_seed_learns_first_is_the_fastest(
    steps: dict[int, list[int | None]], fastest: int
) -> None:
    assert learnt(steps).fastest.heads == fastest


def test_at_equal_steps_a_training_that_has_ended_counts_as_it_ended() -> None:
    found = learnt({1: [500] * 6, 8: [100] * 6})
    assert found.equal_steps == 100
    assert [one.accuracy_at(100).value for one in found.counts] == pytest.approx([0.2, 0.99])
    assert found.counts[1].accuracy_at(800).value == pytest.approx(0.99)


def told(tmp_path: Path, findings: list[Any]) -> Subject:
    return subject([], run_meta([read_run(with_trainings(tmp_path, findings))]))


def test_a_run_of_equal_steps_does_not_say_what_can_be_learnt(tmp_path: Path) -> None:
    card = told(tmp_path, trainings({"recall": {1: [0.2] * 5, 8: [0.9] * 5}})).card
    assert card
    assert card.title == "Quality at equal steps"
    assert "not which can learn" in card.sentence


def test_roles_are_told_by_the_head_with_most_weight(tmp_path: Path) -> None:
    run = with_trainings(tmp_path, roles(), study="trained_roles", part={"seed_number": 0})
    told = trained_roles.subject([], run_meta([read_run(run)]))
    looks, halves = told.lines
    assert "on the verb's subject 80.0 % (80.0 to 80.0) in block 2, 22.0 %" in looks
    assert "removed during training 0.50" in halves


@pytest.mark.parametrize("broken", [{"task": 3}, {"heads": 0}, {"accuracy_ratio": 1.5}])
def test_findings_that_lack_something_are_left_out(broken: dict[str, Any]) -> None:
    assert findings_of(TrainedHeads, [training("recall", 1, 0, 0.5) | broken]) == []


def test_quality_without_times_is_still_quality() -> None:
    one = of({1: [0.5] * 5}, step_ms=None).counts[0]
    assert (one.step.units, one.accuracy.value) == (0, 0.5)


def test_removing_heads_is_judged_by_the_rise_of_the_loss() -> None:
    four = of({4: [0.9] * 5}).counts[0]
    assert four.trainings[0].rises_nats == pytest.approx([0, 0.1, 0.2, 0.3])
    left = {heads: one.value for heads, one in four.losses_over_left("pruned").items()}
    assert left == pytest.approx({4: 0.1, 3: 0.2, 2: 0.3, 1: 0.4, 0: 0.5})


@pytest.mark.parametrize(
    ("removed", "wanted"), [(None, {0: 0.1, 1: 0.2}), ([0, 4], {0: 0.1, 4: 0.2})]
)
def test_a_loss_is_of_so_many_removed_heads(removed: Any, wanted: dict[int, float]) -> None:
    one = one_training(pruned_loss_nats=[0.1, 0.2], pruned_removed_heads=removed)
    assert one.loss_by_removed_heads("pruned") == wanted


def test_bounds_of_shares_stay_between_nothing_and_all(tmp_path: Path) -> None:
    shaky = trainings({"recall": {1: [1.0, 0.6, 1.0, 1.0, 1.0], 2: [1.0] * 5}})
    figure = next(one for one in told(tmp_path, shaky).blocks if isinstance(one, Figure))
    for series in (one for panel in figure.panels for one in panel.series):
        assert all(0 <= bound <= 1 for bound in (*series.low, *series.high) if bound is not None)


def test_a_map_looks_where_most_of_its_weight_is() -> None:
    # The first queries see themselves only, as where a task asks them nothing.
    assert favourite(shifted(0)[: N - 2] + shifted(3)[N - 2 :]) == (3, 1.0)
    assert tokens_attended(shifted(1)) == 1
    assert tokens_attended([[1 / N] * N] * N) == pytest.approx(N)
