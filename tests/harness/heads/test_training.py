"""Small decoders: nothing but the heads differs, and what is found of them."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from attnbench.harness.heads import training
from attnbench.harness.heads.findings import TrainedHeads
from attnbench.harness.heads.removal import Head
from attnbench.harness.heads.studies import trained_heads
from attnbench.harness.heads.studies.trained_heads import TUNING_SEEDS, pruning, tuned
from attnbench.harness.heads.synthetic_tasks import TASKS, Task
from attnbench.harness.heads.training import (
    EVERY,
    decoder,
    held_out,
    one_thread,
    quality,
    train,
)
from attnbench.impls.problem import Problem

CPU = torch.device("cpu")
UNUSED = Problem(batch=1, seq_len=8, d_model=8, heads=1)
RATE = 3e-3


@pytest.fixture(autouse=True)
def _single() -> Iterator[None]:
    with one_thread():
        yield


def for_steps(name: str, count: int) -> Task:
    return TASKS[name]._replace(right_ratio=2.0, limit_steps=count)


def test_models_of_every_number_of_heads_have_equal_parameters_from_equal_seeds() -> None:
    one, many = (decoder(TASKS["copy"], heads, CPU, 3) for heads in (1, 64))
    for (name, left), (other, right) in zip(
        one.model.named_parameters(), many.model.named_parameters(), strict=True
    ):
        assert name == other
        assert torch.equal(left, right), name
    other = decoder(TASKS["copy"], 1, CPU, 4)
    assert not torch.equal(other.model.embedding.weight, one.model.embedding.weight)


def test_equal_seeds_give_equal_losses() -> None:
    def losses(seed: int) -> list[float]:
        of = for_steps("majority", EVERY)
        found: list[float] = train(decoder(of, 4, CPU, seed), of, seed, RATE)["looked_loss_nats"]
        return found

    assert losses(0) == pytest.approx(losses(0), abs=1e-6, rel=0)
    assert losses(0) != losses(1)


def test_training_lowers_the_loss_and_keeps_every_step() -> None:
    of = for_steps("majority", 2 * EVERY)
    model = decoder(of, 2, CPU, 0)
    before, _ = quality(model, held_out(of, 0, CPU))
    done = train(model, of, 0, RATE)
    after, right = quality(model, held_out(of, 0, CPU))
    assert len(done["step_ms"]) == 2 * EVERY
    assert done["looked_steps"] == [EVERY, 2 * EVERY]
    assert after < before - 0.1
    assert 0.5 < right <= 1


@pytest.mark.parametrize(
    ("rights", "learnt", "steps"),
    [
        ([0.5, 0.95, 0.95], 2 * EVERY, 3 * EVERY),
        ([0.95, 0.5, 0.95, 0.95], 3 * EVERY, 4 * EVERY),
        ([0.95, 0.5, 0.95, 0.5, 0.95], None, 5 * EVERY),
    ],
)
def test_training_ends_after_two_good_looks_or_at_the_limit(
    rights: list[float], learnt: int | None, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter(rights)
    monkeypatch.setattr(training, "quality", lambda *_: (0.0, next(looks)))
    of = TASKS["majority"]._replace(right_ratio=0.9, limit_steps=5 * EVERY)
    done = train(decoder(of, 1, CPU, 0), of, 0, RATE)
    assert (done["learnt_steps"], len(done["step_ms"])) == (learnt, steps)
    assert done["looked_accuracy_ratio"] == rights


# ---- the learning rate ---------------------------------------------------------------------------


def test_of_the_grid_the_rate_with_the_fewest_median_steps_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A later rate has as many steps as the best one needed, and no seed when two took more."""
    needed = {0.1: (200, 100, 300), 0.2: (180, 400, 500), 0.3: (240, 220, 10), 0.4: (120, 140, 500)}

    def train(model: object, task: Task, seed: int, learning_rate: float) -> dict[str, Any]:
        steps = needed[learning_rate][seed - TUNING_SEEDS[0]]
        learnt = steps if steps < task.limit_steps else None
        looked: dict[str, Any] = {"looked_steps": [], "looked_accuracy_ratio": [], "step_ms": []}
        return {"learnt_steps": learnt, **looked}

    monkeypatch.setattr(trained_heads, "LEARNING_RATES", tuple(needed))
    monkeypatch.setattr(training, "train", train)
    rate, found = tuned(TASKS["copy"], 1, CPU, 0)
    assert rate == 0.4
    tried = [(one.learning_rate, one.limit_steps, one.learnt_steps) for one in found]
    assert tried == [
        *((0.1, 800, steps) for steps in (200, 100, 300)),
        *((0.2, 200, steps) for steps in (180, None, None)),
        *((0.3, 200, steps) for steps in (None, None)),
        *((0.4, 200, steps) for steps in (120, 140, None)),
    ]
    assert all(one.is_tuning for one in found)


def run(heads: int) -> list[TrainedHeads]:
    return list(trained_heads.run(UNUSED, CPU, 5, task="copy", heads=heads))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few trainings of few steps."""
    monkeypatch.setattr(trained_heads, "SEEDS", 2)
    of = TASKS["copy"]._replace(right_ratio=1.0, limit_steps=2 * EVERY)
    monkeypatch.setitem(TASKS, "copy", of)
    monkeypatch.setattr(trained_heads, "LEARNING_RATES", (RATE,))
    monkeypatch.setattr(trained_heads, "TUNING_SEEDS", range(1000, 1001))


@pytest.mark.usefixtures("short")
def test_seeds_that_tuned_the_rate_are_none_that_it_is_judged_by() -> None:
    found = run(2)
    tuning, judged = ([one for one in found if one.is_tuning is which] for which in (True, False))
    assert {one.learning_rate for one in judged} == {RATE}
    assert [one.train_seed for one in judged] == [5, 6]
    assert not {one.train_seed for one in tuning} & {one.train_seed for one in judged}
    assert {len(one.step_ms) for one in found} == {2 * EVERY}
    assert {one["parameter_count"] for one in found} == {found[0]["parameter_count"]}


@pytest.mark.parametrize("heads", [1, 4])
def test_one_head_learns_majority_too(heads: int) -> None:
    model, done = trained_heads.trained(TASKS["majority"], heads, CPU, 0, 1.5e-3)
    assert done.learnt_steps
    assert quality(model, held_out(TASKS["majority"], 0, CPU))[1] > 0.97


# ---- removed heads -------------------------------------------------------------------------------


@pytest.mark.usefixtures("short")
def test_half_of_the_heads_are_removed_during_training_and_after_it() -> None:
    judged = [one for one in run(trained_heads.SOME_REMOVED) if not one.is_tuning]
    for one in judged:
        assert one.removed_heads == trained_heads.SOME_REMOVED  # of two blocks
        losses = (one.whole_loss_nats, one.removed_after_loss_nats, one.removed_during_loss_nats)
        assert len(set(losses)) == 3


def test_heads_are_removed_one_by_one_in_the_middle_third() -> None:
    of = TASKS["copy"]
    batch = of.draw(torch.Generator().manual_seed(0), 2)
    gone: list[Head] = []
    gates = pruning(decoder(of, 4, CPU, 0), batch, 3, 9, gone)
    left = [int(sum(gate.sum() for gate in gates(step))) for step in range(1, 10)]
    assert left == [8, 8, 8, 7, 6, 5, 5, 5, 5]
    assert len(set(gone)) == 3
