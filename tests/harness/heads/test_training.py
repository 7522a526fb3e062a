"""Small decoders: nothing but the heads differs, and what is found of them."""

from collections.abc import Callable, Iterator
from math import inf
from statistics import median

import pytest
import torch

from attnbench.harness.heads import training
from attnbench.harness.heads.removal import GatedDecoder
from attnbench.harness.heads.studies import trained_head_width, trained_heads, trained_roles
from attnbench.harness.heads.synthetic_tasks import task
from attnbench.harness.heads.training import (
    EVERY,
    SETTLING,
    Goal,
    Learning,
    decoder,
    held_out,
    one_thread,
    quality,
    train,
)
from attnbench.impls.problem import Problem

CPU = torch.device("cpu")
UNUSED = Problem(batch=1, seq_len=8, d_model=8, heads=1)


@pytest.fixture(autouse=True)
def _single() -> Iterator[None]:
    with one_thread():
        yield


def for_steps(count: int) -> Callable[[int], float | None]:
    return lambda step: 1.0 if step < count else None


def test_models_of_every_number_of_heads_have_equal_parameters_from_equal_seeds() -> None:
    one, many = (decoder(task("copy"), heads, CPU, 3) for heads in (1, 64))
    for (name, left), (other, right) in zip(
        one.named_parameters(), many.named_parameters(), strict=True
    ):
        assert name == other
        assert torch.equal(left, right), name
    assert not torch.equal(decoder(task("copy"), 1, CPU, 4).embedding.weight, one.embedding.weight)


def test_equal_seeds_give_equal_losses() -> None:
    def losses(seed: int) -> list[float]:
        model, of = decoder(task("majority"), 4, CPU, seed), task("majority")
        return train(model, of, for_steps(6), seed).losses

    assert losses(0) == pytest.approx(losses(0), abs=1e-6, rel=0)
    assert losses(0) != losses(1)


def test_training_lowers_the_loss_and_keeps_every_step() -> None:
    of = task("majority")
    model = decoder(of, 2, CPU, 0)
    before, _ = quality(model, held_out(of, 0, CPU))
    done = train(model, of, for_steps(30), 0)
    after, right = quality(model, held_out(of, 0, CPU))
    assert len(done.losses) == len(done.step_ms) == 30
    assert after < before - 0.1
    assert 0.5 < right <= 1
    assert done.peak_bytes > sum(one.numel() * 4 for one in model.parameters())


def scripted(goal: Goal, rights: list[float], monkeypatch: pytest.MonkeyPatch) -> Learning:
    """Looks that find these shares of right answers, and the last of them from then on."""
    found = iter(rights)
    monkeypatch.setattr(training, "quality", lambda *_: (0.0, next(found, rights[-1])))
    of = task("majority")
    return Learning(decoder(of, 1, CPU, 0), of, goal, 0)


@pytest.mark.parametrize(
    ("goal", "rights", "learnt", "steps"),
    [
        (Goal(0.9, 1000), [0.5, 0.95, 0.95], 2 * EVERY, 3 * EVERY + SETTLING),
        (Goal(0.9, 1000), [0.95, 0.5, 0.95, 0.95], 3 * EVERY, 4 * EVERY + SETTLING),
        (Goal(0.9, 50), [0.5], None, 50 + SETTLING),
        (Goal(None, 50), [1.0], None, 50 + SETTLING),
    ],
)
def test_training_ends_after_two_good_looks_or_at_the_limit(
    goal: Goal, rights: list[float], learnt: int | None, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rate = scripted(goal, rights, monkeypatch)
    shares = []
    while (share := rate(len(shares))) is not None:
        shares.append(share)
    assert (rate.learnt_steps, len(shares)) == (learnt, steps)
    staying = shares[training.WARM_UP : steps - SETTLING]
    assert set(staying) == {training.STAYING_RATE_SHARE}
    assert 0 < shares[-1] < shares[-2] < staying[0]


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "heads"), [("copy", 1), ("copy", 16), ("text", 16)])
def test_each_number_of_heads_has_the_rate_with_which_it_learns_in_the_fewest_steps(
    name: str, heads: int
) -> None:
    """From seeds that no study has; within a third, since three seeds are few."""
    of, goal = task(name), trained_heads.GOALS[name]

    def steps(share: float, seed: int) -> float:
        model = decoder(of, heads, CPU, seed)
        rate = Learning(model, of, goal, seed, share)
        train(model, of, rate, seed)
        return rate.learnt_steps or inf

    of_shares = {
        share: median(steps(share, seed) for seed in (1000, 1001, 1002))
        for share in trained_heads.SHARES_TRIED
    }
    chosen = of_shares[trained_heads.RATE_SHARES[name][heads]]
    assert chosen <= 4 / 3 * min(of_shares.values())
    assert max(of_shares.values()) > 4 / 3 * chosen, "another rate would not have been told apart"


def test_more_heads_need_more_bytes_for_a_step() -> None:
    of = task("majority")
    batch = of.draw(torch.Generator().manual_seed(0), training.BATCH)
    few, many = (training.step_bytes(decoder(of, heads, CPU, 0), batch) for heads in (1, 64))
    assert many > 2 * few


# ---- trained_heads -------------------------------------------------------------------------------


@pytest.mark.long
def test_one_head_learns_majority_too() -> None:
    one, many = (trained_heads.trained("majority", heads, CPU, 0) for heads in (1, 8))
    assert min(one.accuracy_ratio, many.accuracy_ratio) > 0.95
    assert max(many.steps_until_learnt, one.steps_until_learnt) < one.limit_steps
    assert one.learning_rate < many.learning_rate


def test_heads_of_one_width_make_a_wider_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(trained_head_width.GOALS, "copy", Goal(None, 1))
    few, many = (
        next(trained_head_width.run(UNUSED, CPU, 0, task="copy", heads=heads)) for heads in (2, 16)
    )
    assert few.d_k == many.d_k == 8
    assert many.parameter_count > few.parameter_count


# ---- trained_roles -------------------------------------------------------------------------------


def test_half_of_the_heads_are_removed_during_training_and_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trained_roles, "GOAL", Goal(None, 24))
    found = trained_roles.trained(CPU, 0)
    assert found.removed_heads == trained_roles.HEADS
    assert found.steps == 24 + SETTLING
    assert found.whole_nats != found.pruned_after_nats != found.pruned_during_nats
    of = task("text", trained_roles.TOKENS)
    model = GatedDecoder(decoder(of, 4, CPU, 0, tokens=trained_roles.TOKENS))
    batch = of.draw(torch.Generator().manual_seed(0), 2)
    pruning = trained_roles.Pruning(model, batch, 3, 9)
    gone = []
    for _ in range(9):
        pruning.loss(batch)
        gone.append(len(pruning.gone))
    assert gone == [0, 0, 0, 1, 2, 3, 3, 3, 3]
    assert len(set(pruning.gone)) == 3
