"""harness/heads/removal.py: what is left without some heads."""

from copy import deepcopy

import pytest
import torch

from attnbench.harness.heads import removal
from attnbench.harness.heads.removal import GatedDecoder
from attnbench.harness.heads.synthetic_tasks import TASKS, UNSCORED, Batch
from attnbench.harness.heads.training import decoder, held_out, quality

CPU = torch.device("cpu")
HEADS = 4
EVERY_HEAD = [(block, head) for block in range(2) for head in range(HEADS)]


@pytest.fixture(scope="module")
def model() -> tuple[GatedDecoder, Batch]:
    """Of two blocks; its biases are not 0, as after training."""
    of = TASKS["copy"]
    found = decoder(of, HEADS, CPU, 0)
    with torch.no_grad():
        for number, one in enumerate(found.model.parameters()):
            one.add_(0.1 * torch.randn(one.shape, generator=torch.Generator().manual_seed(number)))
    return found, Batch(*(one[:8] for one in held_out(of, 0, CPU)))


def scaled(model: GatedDecoder, head: removal.Head, factor: float) -> GatedDecoder:
    """With the columns of W_O of a head times a factor."""
    found, width, (block, place) = deepcopy(model), model.model.problem.d_v, head
    w_o = found.model.own_blocks[block].attention.weights().w_o
    with torch.no_grad():
        w_o[:, place * width : (place + 1) * width] *= factor
    return found


def test_a_removed_head_adds_nothing_to_its_layer(model) -> None:
    decoder, batch = model
    for head in EVERY_HEAD:
        without = quality(scaled(decoder, head, 0.0), batch)[0]
        each = removal.without(decoder, [head], batch)
        scored = (batch.targets != UNSCORED).sum(-1)
        mean = sum(nats * count for nats, count in zip(each, scored.tolist(), strict=True))
        assert mean / int(scored.sum()) == pytest.approx(without, abs=1e-6)


def test_importance_is_the_derivative_by_a_factor_of_the_output(model) -> None:
    decoder, batch = model
    found, step = removal.importance(decoder, batch), 1e-2
    assert [*found.values()] == sorted(found.values())
    for head in EVERY_HEAD:
        more, less = (quality(scaled(decoder, head, one), batch)[0] for one in (1 + step, 1 - step))
        assert found[head] == pytest.approx(abs(more - less) / (2 * step), abs=5e-4, rel=0.05)
