"""trained_heads: seeds until the interval is narrow; what a training shows."""

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


@pytest.mark.long
def test_six_relations_need_more_than_one_head() -> None:
    accuracy = {}
    with one_thread():
        for heads in (1, 16):
            found = trained_heads.trained("six_relations", heads, CPU, 0, maps=False)
            accuracy[heads] = found["accuracy_ratio"]
    assert accuracy[1] < 0.5 < 0.9 < accuracy[16]
