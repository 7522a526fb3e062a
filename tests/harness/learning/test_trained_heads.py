"""trained_heads: seeds until the interval is narrow; what a training shows."""

import pytest
import torch

from attnbench.harness.learning.studies import trained_heads
from attnbench.harness.learning.studies.trained_heads import FEWEST_SEEDS, MOST_SEEDS, enough
from attnbench.harness.learning.training import one_thread

CPU = torch.device("cpu")


def test_seeds_end_where_the_interval_is_narrow_and_not_before_five() -> None:
    assert not enough([])
    assert not enough([0.5] * (FEWEST_SEEDS - 1))
    assert enough([0.5] * FEWEST_SEEDS)
    assert not enough([0.2, 0.9, 0.5, 0.3, 0.8])
    assert enough([0.2, 0.9] * (MOST_SEEDS // 2) + [0.5] * (MOST_SEEDS % 2))


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
