"""trained_heads: seeds until the interval is narrow; what a training shows."""

import json

import pytest
import torch

from attnbench.harness.learning.studies import trained_heads
from attnbench.harness.learning.studies.trained_heads import FEWEST_SEEDS, MOST_SEEDS, enough
from attnbench.harness.learning.training import one_thread
from attnbench.impls.problem import Problem

CPU = torch.device("cpu")
UNUSED = Problem(batch=1, seq_len=8, d_model=8, heads=1)


def test_seeds_end_where_the_interval_is_narrow_and_not_before_five() -> None:
    assert not enough([])
    assert not enough([0.5] * (FEWEST_SEEDS - 1))
    assert enough([0.5] * FEWEST_SEEDS)
    assert not enough([0.2, 0.9, 0.5, 0.3, 0.8])
    assert enough([0.2, 0.9] * (MOST_SEEDS // 2) + [0.5] * (MOST_SEEDS % 2))


def test_seeds_are_counted_on_and_maps_kept_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(trained_heads.STEPS, "majority", 2)
    found = list(trained_heads.run(UNUSED, CPU, 7, task="majority", heads=4))
    assert [one["train_seed"] for one in found] == list(range(7, 7 + len(found)))
    assert [one["seed_number"] for one in found] == list(range(len(found)))
    assert [one["weight_rows_after"] is not None for one in found] == [True] + [False] * (
        len(found) - 1
    )
    assert len({one["loss_nats"] for one in found}) == len(found)


@pytest.mark.parametrize(
    ("heads", "drawn", "single", "pruned", "greedy"),
    [
        (2, True, True, 1, 1),
        (8, True, True, 1, 1),
        (16, False, True, 1, 2),
        (64, False, False, 8, 8),
    ],
)
def test_of_many_heads_there_are_no_maps_and_pruning_is_in_groups(
    monkeypatch: pytest.MonkeyPatch,
    heads: int,
    drawn: bool,
    single: bool,
    pruned: int,
    greedy: int,
) -> None:
    """`pruned`, `greedy`: heads of a group."""
    monkeypatch.setitem(trained_heads.STEPS, "majority", 2)
    with one_thread():
        found = trained_heads.trained("majority", heads, CPU, 0, maps=True)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    for field, there in (
        ("weight_rows_before", drawn),
        ("weight_rows_after", drawn),
        ("sentence", drawn),
        ("single_loss_nats", single),
    ):
        assert (found[field] is not None) is there, field
    assert len(found["entropy_nats_after"][0]) == heads
    assert len(found["step_loss_nats"]) == len(found["step_ms"]) == 2
    if single:
        assert len(found["single_loss_nats"][0]) == heads
    assert len(found["pruned_heads"]) == heads
    for order, group in (("pruned", pruned), ("greedy", greedy)):
        assert found[f"{order}_removed_heads"] == list(range(0, heads + 1, group))
        assert len(found[f"{order}_loss_nats"]) == heads // group + 1
    assert found["greedy_loss_nats"][-1] == found["pruned_loss_nats"][-1]


def test_noise_is_tried_at_several_levels_and_one_of_them_has_fields_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(trained_heads.STEPS, "recall", 60)
    with one_thread():
        found = trained_heads.trained("recall", 4, CPU, 0, maps=False)
    levels, losses = found["noise_levels_ratio"], found["noise_levels_loss_nats"]
    assert levels == sorted(levels)
    assert len(levels) == len(losses) == len(found["noise_levels_accuracy_ratio"]) > 1
    place = levels.index(found["noise_ratio"])
    assert losses[place] == found["noisy_loss_nats"]
    assert found["noise_levels_accuracy_ratio"][place] == found["noisy_accuracy_ratio"]
    assert found["loss_nats"] < losses[0] < losses[-1]


def test_the_same_seed_gives_the_same_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(trained_heads.STEPS, "recall", 4)
    with one_thread():
        one, other = (trained_heads.trained("recall", 8, CPU, 3, maps=False) for _ in range(2))
    assert one["step_loss_nats"] == pytest.approx(other["step_loss_nats"], abs=1e-6, rel=0)
    assert one["loss_nats"] == pytest.approx(other["loss_nats"], abs=1e-6, rel=0)


@pytest.mark.long
def test_six_relations_need_more_than_one_head() -> None:
    accuracy = {}
    with one_thread():
        for heads in (1, 16):
            found = trained_heads.trained("six_relations", heads, CPU, 0, maps=False)
            accuracy[heads] = found["accuracy_ratio"]
    assert accuracy[1] < 0.5 < 0.9 < accuracy[16]
