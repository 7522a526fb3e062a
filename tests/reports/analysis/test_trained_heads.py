"""reports/analysis/trained_heads.py: how many heads are enough, by intervals over seeds."""

from math import isnan, log
from typing import Any

import pytest

from attnbench.reports.analysis.trained_heads import (
    difference,
    favourite,
    losses_over_left,
    mean_of,
    overfit,
    results,
    share_of,
    single_removals,
    spread_of,
    tokens_attended,
    worst_removal,
)
from attnbench.reports.analysis.trained_heads import (
    trainings as known,
)
from tests.reports.fake_trainings import CLEAR, N, shifted, training, trainings


def run_of(findings: list[Any]) -> dict[str, Any]:
    return {"studies": [{"study": "trained_heads", **one} for one in findings]}


def of(accuracies: dict[int, list[float]]) -> Any:
    (found,) = results(run_of(trainings({"recall": accuracies})))
    return found


def test_the_fewest_heads_within_two_points_of_the_best_are_enough() -> None:
    found = {one.task: one for one in results(run_of(CLEAR))}
    assert found["recall"].enough.heads == 1
    assert found["six_relations"].enough.heads == 8
    assert found["six_relations"].of("worse") == [1, 2]


def test_what_the_intervals_do_not_decide_is_said() -> None:
    found = of({1: [0.90, 0.99, 0.80, 0.99, 0.99], 2: [0.99] * 5})
    assert found.of("undecided") == [1]
    assert found.enough.heads == 2


def test_numbers_of_heads_are_compared_seed_by_seed() -> None:
    """The seeds differ by more than the heads do, and the difference is the same for each."""
    easy = [0.5, 0.6, 0.7, 0.8, 0.9]
    found = of({1: [one - 0.05 for one in easy], 2: easy})
    assert found.of("worse") == [1]
    behind = found.counts[0].behind
    assert (behind.low, behind.high) == (pytest.approx(0.05), pytest.approx(0.05))
    shuffled = difference(found.counts[0], found.counts[0], "accuracy_ratio")
    assert shuffled.value == 0


def test_one_seed_decides_nothing() -> None:
    found = of({1: [0.5], 2: [0.9]})
    assert found.of("undecided") == [1]
    assert isnan(found.best.accuracy.low)


def test_a_number_of_heads_is_worth_its_time_if_it_is_surely_better_than_every_faster_one() -> None:
    found = of({1: [0.90, 0.91, 0.92], 2: [0.5] * 3, 4: [0.91, 0.92, 0.93], 8: [0.9, 0.99, 0.9]})
    assert [one.heads for one in found.counts if one.is_worth] == [1, 4]


@pytest.mark.parametrize(
    "broken",
    [
        {"task": 3},
        {"heads": "8"},
        {"heads": 0},
        {"train_seed": None},
        {"accuracy_ratio": None},
        {"accuracy_ratio": 1.5},
        {"loss_nats": "low"},
    ],
)
def test_findings_that_lack_something_are_left_out(broken: dict[str, Any]) -> None:
    assert known(run_of([training("recall", 1, 0, 0.5) | broken])) == []
    assert results({"studies": "none"}) == []


@pytest.mark.parametrize("heads", [{"step_ms": []}, {"step_ms": None}, {"step_ms": [0.0, "x"]}])
def test_quality_without_times_is_still_quality(heads: dict[str, Any]) -> None:
    (found,) = results(run_of([training("recall", 1, seed, 0.5) | heads for seed in range(5)]))
    assert found.best.step.units == 0
    assert found.best.accuracy.value == 0.5


def test_metrics_are_means_over_heads_and_intervals_over_seeds() -> None:
    found = of({2: [0.9] * 5, 8: [0.9] * 5})
    two, eight = found.counts
    assert mean_of(two, "entropy_nats", "before").value == 2.5
    assert mean_of(eight, "entropy_nats", "after").value == 4.0
    assert spread_of(eight, "distance_tokens", "after").value == 7
    assert share_of(two, "previous_share", "before").value == 0
    assert share_of(two, "previous_share", "after").value == 1
    assert mean_of(two, "unheard_of", "after").units == 0


def test_removing_heads_is_judged_by_the_rise_of_the_loss() -> None:
    four = of({4: [0.9] * 5}).counts[0]
    assert single_removals(four).value == pytest.approx(0.15)  # of 0, 0.1, 0.2 and 0.3
    assert worst_removal(four).value == pytest.approx(0.3)
    left = losses_over_left(four, "pruned_loss_nats")
    assert {heads: round(one.value, 3) for heads, one in left.items()} == {
        4: 0.1,
        3: 0.2,
        2: 0.3,
        1: 0.4,
        0: 0.5,
    }
    assert losses_over_left(four, "unheard_of") == {}
    assert overfit(four).value == pytest.approx(0.01)


def test_a_map_is_judged_by_the_queries_that_have_something_to_look_back_at() -> None:
    """The first queries see themselves only, as where a task asks them nothing."""
    rows = shifted(0)[: N - 2] + shifted(3)[N - 2 :]
    assert favourite(rows) == (3, 1.0)


def test_a_map_looks_where_most_of_its_weight_is() -> None:
    assert favourite(shifted(2)) == (2, 1.0)
    back, share = favourite(shifted(1, 0.6))
    assert (back, share) == (1, pytest.approx(0.6))
    assert tokens_attended(shifted(1)) == 1
    uniform = [[1 / N] * N] * N
    assert log(tokens_attended(uniform)) == pytest.approx(log(N))
