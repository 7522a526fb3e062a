"""reports/learning/trained.py: how many heads are enough, by intervals over seeds."""

from math import isnan, log
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from attnbench.harness.learning.findings import TrainedHeads
from attnbench.harness.rows.findings import findings_of
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.elements import Figure
from attnbench.reports.learning.maps import favourite, tokens_attended
from attnbench.reports.learning.subjects.trained_heads import subject
from attnbench.reports.learning.trained import (
    by_removed_heads,
    losses_over_left,
    more_accurate,
    of_heads,
    overfit,
    results,
    rises,
)
from tests.reports.fake_trainings import CLEAR, N, shifted, training, trainings, with_trainings


def studied(findings: list[Any]) -> list[Any]:
    return [{"study": "trained_heads", **one} for one in findings]


def of(accuracies: dict[int, list[float]]) -> Any:
    (found,) = results(studied(trainings({"recall": accuracies})))
    return found


def test_the_fewest_heads_within_two_points_of_the_best_are_enough() -> None:
    found = {one.task: one for one in results(studied(CLEAR))}
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
    behind = more_accurate(found.best, found.counts[0])
    assert (behind.low, behind.high) == (pytest.approx(0.05), pytest.approx(0.05))
    assert more_accurate(found.best, found.best).value == 0


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
    assert results(studied([training("recall", 1, 0, 0.5) | broken])) == []
    assert results("none") == []


@pytest.mark.parametrize("heads", [{"step_ms": []}, {"step_ms": None}])
def test_quality_without_times_is_still_quality(heads: dict[str, Any]) -> None:
    (found,) = results(studied([training("recall", 1, seed, 0.5) | heads for seed in range(5)]))
    assert found.best.step.units == 0
    assert found.best.accuracy.value == 0.5


def test_metrics_are_means_over_heads_and_intervals_over_seeds() -> None:
    found = of({2: [0.9] * 5, 8: [0.9] * 5})
    two, eight = found.counts
    assert two.over_heads("entropy_nats", "before", fmean).value == 2.5
    assert eight.over_heads("entropy_nats", "after", fmean).value == 4.0
    assert two.over_heads("entropy_nats", "after", max, fewest=3).units == 0
    assert of_heads(two.trainings[0], "nearest_similarity", "after") == []


def test_removing_heads_is_judged_by_the_rise_of_the_loss() -> None:
    four = of({4: [0.9] * 5}).counts[0]
    assert rises(four.trainings[0]) == pytest.approx([0, 0.1, 0.2, 0.3])
    left = losses_over_left(four, "pruned")
    assert {heads: round(one.value, 3) for heads, one in left.items()} == {
        4: 0.1,
        3: 0.2,
        2: 0.3,
        1: 0.4,
        0: 0.5,
    }
    assert overfit(four.trainings[0]) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("removed", "wanted"),
    [(None, {0: 0.1, 1: 0.2}), ([0, 4], {0: 0.1, 4: 0.2}), ([0], {}), ([4, 0], {})],
)
def test_a_loss_is_of_so_many_removed_heads(removed: Any, wanted: dict[int, float]) -> None:
    made = training("copy", 4, 0, 0.9, pruned_loss_nats=[0.1, 0.2], pruned_removed_heads=removed)
    (one,) = findings_of(TrainedHeads, studied([made]))
    assert by_removed_heads(one, "pruned") == wanted


def test_bounds_of_shares_stay_between_nothing_and_all(tmp_path: Path) -> None:
    shaky = trainings({"recall": {1: [1.0, 0.6, 1.0, 1.0, 1.0], 2: [1.0] * 5}})
    told = subject([], run_meta([read_run(with_trainings(tmp_path, shaky))]))
    figure = next(one for one in told.blocks if isinstance(one, Figure))
    for series in (one for panel in figure.panels for one in panel.series):
        assert all(0 <= bound <= 1 for bound in (*series.low, *series.high) if bound is not None)


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
