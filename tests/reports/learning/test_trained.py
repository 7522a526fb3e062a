"""reports/learning: what is computed from trainings over seeds."""

from math import isnan
from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.learning.findings import TrainedGradients, TrainedHeads, TrainedProjections
from attnbench.harness.rows.findings import findings_of
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.elements import Figure
from attnbench.reports.learning.maps import favourite, tokens_attended
from attnbench.reports.learning.subjects.trained_heads import subject
from attnbench.reports.learning.subjects.trained_projections import trained_attentions
from attnbench.reports.learning.trained import TaskResult, results, trained_models
from tests.reports.fake_trainings import (
    N,
    gradients,
    projected,
    shifted,
    training,
    trainings,
    with_trainings,
)

NO_LEVELS = {"noise_levels_ratio": None, "noise_levels_accuracy_ratio": None}


def of(accuracies: dict[int, list[float]], **fields: Any) -> TaskResult:
    made = [one | fields for one in trainings({"recall": accuracies})]
    (found,) = results(findings_of(TrainedHeads, made))
    return found


def one_training(**fields: Any) -> TrainedHeads:
    return of({2: [0.9]}, **fields).counts[0].trainings[0]


STEADY = [0.98, 0.99, 0.98, 0.99, 0.98]
EASY = [0.5, 0.6, 0.7, 0.8, 0.9]  # the seeds differ by more than the heads do


@pytest.mark.parametrize(
    ("accuracies", "enough", "worse", "undecided"),
    [
        ({1: STEADY, 2: STEADY}, 1, [], []),
        ({1: [0.1] * 5, 2: [0.4, 0.44, 0.5, 0.38, 0.41], 8: STEADY}, 8, [1, 2], []),
        ({1: [0.90, 0.99, 0.80, 0.99, 0.99], 2: [0.99] * 5}, 2, [], [1]),
        ({1: [one - 0.05 for one in EASY], 2: EASY}, 2, [1], []),  # seed by seed
        ({1: [0.5], 2: [0.9]}, 2, [], [1]),
    ],
)
def test_the_fewest_heads_within_two_points_of_the_best_are_enough(
    accuracies: dict[int, list[float]], enough: int, worse: list[int], undecided: list[int]
) -> None:
    found = of(accuracies)
    shown = (found.enough.heads, found.of("worse"), found.of("not decided"))
    assert shown == (enough, worse, undecided)


def test_a_number_of_heads_is_worth_its_time_if_it_is_surely_better_than_every_faster_one() -> None:
    found = of({1: [0.90, 0.91, 0.92], 2: [0.5] * 3, 4: [0.91, 0.92, 0.93], 8: [0.9, 0.99, 0.9]})
    assert [one.heads for one in found.counts if one.is_worth] == [1, 4]
    assert isnan(of({1: [0.5]}).best.accuracy.low)


@pytest.mark.parametrize("broken", [{"task": 3}, {"heads": 0}, {"accuracy_ratio": 1.5}])
def test_findings_that_lack_something_are_left_out(broken: dict[str, Any]) -> None:
    assert findings_of(TrainedHeads, [training("recall", 1, 0, 0.5) | broken]) == []


def test_quality_without_times_is_still_quality() -> None:
    best = of({1: [0.5] * 5}, step_ms=None).best
    assert (best.step.units, best.accuracy.value) == (0, 0.5)


def test_removing_heads_is_judged_by_the_rise_of_the_loss() -> None:
    four = of({4: [0.9] * 5}).counts[0]
    assert four.trainings[0].rises_nats == pytest.approx([0, 0.1, 0.2, 0.3])
    left = {heads: one.value for heads, one in four.losses_over_left("pruned").items()}
    assert left == pytest.approx({4: 0.1, 3: 0.2, 2: 0.3, 1: 0.4, 0: 0.5})
    assert four.trainings[0].overfit_nats == pytest.approx(0.01)
    costs = of({8: [0.9]}).counts[0].costs_over_left()
    assert [(one.left, one.time_ratio.value) for one in (costs[0], costs[-1])] == [(8, 1), (0, 0.4)]


@pytest.mark.parametrize(
    ("removed", "wanted"), [(None, {0: 0.1, 1: 0.2}), ([0, 4], {0: 0.1, 4: 0.2})]
)
def test_a_loss_is_of_so_many_removed_heads(removed: Any, wanted: dict[int, float]) -> None:
    one = one_training(pruned_loss_nats=[0.1, 0.2], pruned_removed_heads=removed)
    assert one.loss_by_removed_heads("pruned") == wanted


def test_bounds_of_shares_stay_between_nothing_and_all(tmp_path: Path) -> None:
    shaky = trainings({"recall": {1: [1.0, 0.6, 1.0, 1.0, 1.0], 2: [1.0] * 5}})
    told = subject([], run_meta([read_run(with_trainings(tmp_path, shaky))]))
    figure = next(one for one in told.blocks if isinstance(one, Figure))
    for series in (one for panel in figure.panels for one in panel.series):
        assert all(0 <= bound <= 1 for bound in (*series.low, *series.high) if bound is not None)


def test_a_map_looks_where_most_of_its_weight_is() -> None:
    # The first queries see themselves only, as where a task asks them nothing.
    assert favourite(shifted(0)[: N - 2] + shifted(3)[N - 2 :]) == (3, 1.0)
    assert tokens_attended(shifted(1)) == 1
    assert tokens_attended([[1 / N] * N] * N) == pytest.approx(N)


def test_levels_of_noise_come_in_order_and_begin_without_it() -> None:
    levels = {"noise_levels_ratio": [2.0, 0.5], "noise_levels_accuracy_ratio": [0.1, 0.6]}
    count = of({2: [0.9] * 5}, **levels).counts[0]
    found = {level: one.value for level, one in count.accuracy_over_noise().items()}
    assert list(found) == [0.0, 0.5, 2.0]
    assert found == pytest.approx({0.0: 0.9, 0.5: 0.6, 2.0: 0.1})
    assert count.mean("points_lost").value == pytest.approx(55)


def test_rows_of_one_level_are_read_and_unknown_noise_takes_nothing() -> None:
    assert one_training(**NO_LEVELS).accuracy_by_noise == {0.5: 0.45}
    for unknown in ("noise_ratio", "noisy_accuracy_ratio"):
        one = one_training(**NO_LEVELS, **{unknown: None})
        assert (one.accuracy_by_noise, one.points_lost) == ({}, None)


def test_models_have_their_fades_and_norms_over_seeds() -> None:
    made = [*gradients("attention", 0.0), *gradients("gru")]
    attention, gru = trained_models(findings_of(TrainedGradients, made))
    assert (attention.model, len(attention.trainings)) == ("attention", 5)
    fade, norms = gru.fade("after"), gru.norms()
    assert fade.value == pytest.approx(-0.1)
    assert fade.low < fade.value < fade.high < 0
    values = [norm.value for norm in norms.values() if norm]
    assert values == pytest.approx([1.0, 0.9, 0.8], abs=1e-3)
    made = gradients("gru", gradient_norms_after=[1.0, 0.0])
    (dead,) = trained_models(findings_of(TrainedGradients, made))
    assert dead.norms()[2] is None, "a norm of zero has no geometric mean"


def test_attentions_are_compared_with_the_exact_one_seed_by_seed() -> None:
    """The seeds differ by more than the attentions do, and the difference is the same for each."""
    given = [("newer", 0.5, 1.0), ("trained", 0.8, 2.0), ("exact", 0.9, 4.0)]
    made = [one for of in given for one in projected(*of)]
    found = trained_attentions(findings_of(TrainedProjections, made))["recall"]
    exact, trained, _ = found
    assert [one.name for one in found] == ["exact", "trained, from means", "newer"]
    assert trained.less
    assert trained.time_ratio
    assert (trained.less.low, trained.less.high) == (pytest.approx(10), pytest.approx(10))
    assert trained.time_ratio.value == pytest.approx(0.5)
    assert exact.less is exact.time_ratio is None
    made = projected("pooled", 0.5, 1.0)
    ((alone,),) = trained_attentions(findings_of(TrainedProjections, made)).values()
    assert alone.less is None
