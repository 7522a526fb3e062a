"""harness/learning/studies/trained_projections.py: what a model learns with projections in it."""

import pytest
import torch

from attnbench.harness.learning.studies import trained_projections
from attnbench.harness.learning.studies.trained_projections import ATTENTIONS
from attnbench.harness.learning.training import one_thread
from attnbench.impls.problem import Problem

CPU = torch.device("cpu")
UNUSED = Problem(batch=1, seq_len=8, d_model=8, heads=1)


def test_a_part_trains_every_attention_from_one_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(trained_projections.STEPS, "recall", 2)
    found = list(trained_projections.run(UNUSED, CPU, 3, task="recall", seed_number=2))
    assert [(one["train_seed"], one["attention"]) for one in found] == [
        (5, attention) for attention in ATTENTIONS
    ]
    learnt = {one["attention"]: one["parameter_count"] for one in found}
    added = 2 * trained_projections.RANK * trained_projections.TOKENS
    exact = learnt["exact"]
    assert learnt["trained"] == learnt["trained_from_random"] == exact + added
    assert learnt["pooled"] == learnt["random"] == exact
    assert [one["rank"] for one in found[:2]] == [None, trained_projections.RANK]


@pytest.mark.long
def test_a_quarter_of_the_rows_serves_recall_if_they_are_means_and_not_if_they_are_random(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(trained_projections.STEPS, "recall", 180)
    with one_thread():
        exact, pooled, random = (
            trained_projections.trained("recall", attention, CPU, 0).accuracy_ratio
            for attention in ("exact", "pooled", "random")
        )
    assert exact > 0.9
    assert pooled > random + 0.2
