"""harness/learning/pruning.py: a removed head is gone, and comes back."""

import pytest
import torch

from attnbench.harness.learning.checkpoints.gated import GatedDecoder, Head
from attnbench.harness.learning.checkpoints.removal import by_importance, importance
from attnbench.harness.learning.pruning import (
    counts,
    losses_greedily,
    losses_in_order,
    removed,
    single_losses,
)
from attnbench.harness.learning.synthetic_tasks import Batch, task
from attnbench.harness.learning.training import decoder, held_out, one_thread, quality, train
from attnbench.impls.block import Decoder

CPU = torch.device("cpu")
ONE_BY_ONE = range(5)  # of four heads


@pytest.fixture(scope="module")
def trained() -> tuple[Decoder, Batch]:
    of = task("majority")
    model = decoder(of, 4, CPU, 0)
    with one_thread():
        train(model, of, 30, 0)
    return model, Batch(*(one[:32] for one in held_out(of, 0, CPU)))


def test_without_a_head_the_layer_is_the_sum_of_the_others(trained) -> None:
    model, batch = trained
    layer = model.blocks[0].attention
    x = model.blocks[0].norm_1(model.embed(batch.tokens))
    with torch.no_grad():
        whole = layer(x, x, x)[0]
        parts = []
        for head in range(4):
            with removed(model, [Head(0, other) for other in range(4) if other != head]):
                parts.append(layer(x, x, x)[0] - layer.weights().b_o)
        with removed(model, [Head(0, 2)]):
            without = layer(x, x, x)[0]
    torch.testing.assert_close(sum(parts) + layer.weights().b_o, whole, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(whole - parts[2], without, atol=1e-5, rtol=1e-4)


def test_the_model_is_whole_again_afterwards(trained) -> None:
    model, batch = trained
    before = quality(model, batch)
    single_losses(model, batch)
    losses_in_order(model, by_importance(GatedDecoder(model, {}), batch), ONE_BY_ONE, batch)
    losses_greedily(model, (0, 2, 4), batch, batch)
    assert quality(model, batch) == before


def test_importance_is_the_derivative_by_a_factor_of_the_output(trained) -> None:
    model, batch = trained
    w_o, step = model.blocks[0].attention.weights().w_o, 1e-2
    found = importance(GatedDecoder(model, {}), batch)
    for head in range(4):
        losses = []
        for factor in (1 + step, 1 - step):
            before = w_o.detach().clone()
            with torch.no_grad():
                w_o[:, head * 16 : (head + 1) * 16] *= factor
                losses.append(quality(model, batch)[0])
                w_o.copy_(before)
        slope = abs(losses[0] - losses[1]) / (2 * step)
        assert found[Head(0, head)] == pytest.approx(slope, abs=2e-4, rel=0.02)


def test_a_group_is_of_the_heads_that_are_missed_least_alone(trained) -> None:
    model, batch = trained
    singles = [loss for block in single_losses(model, batch) for loss in block]
    gone = sorted(range(4), key=lambda head: singles[head])[:2]
    with removed(model, [Head(0, head) for head in gone]):
        without = quality(model, batch)[0]
    grouped, singly = (
        losses_greedily(model, removed_heads, batch, batch)
        for removed_heads in ((0, 2, 4), ONE_BY_ONE)
    )
    assert grouped == [singly[0], without, singly[-1]]


@pytest.mark.parametrize(
    ("heads", "most", "wanted"),
    [
        (4, 8, [0, 1, 2, 3, 4]),
        (8, 8, [0, 1, 2, 3, 4, 5, 6, 7, 8]),
        (16, 8, [0, 2, 4, 6, 8, 10, 12, 14, 16]),
        (10, 4, [0, 3, 6, 9, 10]),
        (1, 8, [0, 1]),
    ],
)
def test_heads_go_in_steps_of_one_size(heads: int, most: int, wanted: list[int]) -> None:
    assert counts(heads, most) == wanted
