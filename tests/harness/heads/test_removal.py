"""harness/heads/removal.py: what is left without some heads."""

from copy import deepcopy

import pytest
import torch

from attnbench.harness.heads import removal
from attnbench.harness.heads.removal import GatedDecoder, Head
from attnbench.harness.heads.synthetic_tasks import UNSCORED, Batch, task
from attnbench.harness.heads.training import decoder, held_out, quality
from attnbench.impls.modules.block import Decoder

CPU = torch.device("cpu")
HEADS = 4
ORDER = [Head(*one) for one in [(0, 2), (1, 0), (0, 1), (0, 3), (0, 0), (1, 3), (1, 1), (1, 2)]]


@pytest.fixture(scope="module")
def model() -> tuple[Decoder, Batch]:
    """Of two blocks; its biases are not 0, as after training."""
    of = task("copy")
    found = decoder(of, HEADS, CPU, 0)
    with torch.no_grad():
        for number, one in enumerate(found.parameters()):
            one.add_(0.1 * torch.randn(one.shape, generator=torch.Generator().manual_seed(number)))
    return found, Batch(*(one[:8] for one in held_out(of, 0, CPU)))


def scaled(model: Decoder, head: Head, factor: float) -> Decoder:
    """With the columns of W_O of a head times a factor."""
    found, width = deepcopy(model), model.problem.d_v
    w_o = found.own_blocks[head.block].attention.weights().w_o
    with torch.no_grad():
        w_o[:, head.head * width : (head.head + 1) * width] *= factor
    return found


def test_a_removed_head_adds_nothing_to_its_layer(model) -> None:
    decoder, batch = model
    for head in ORDER:
        loss = removal.without(GatedDecoder(decoder), [head], batch, removal.mean)
        without = quality(scaled(decoder, head, 0.0), batch)[0]
        assert loss == pytest.approx(without, abs=1e-6)
        each = removal.without(GatedDecoder(decoder), [head], batch, removal.of_sequences)
        scored = (batch.targets != UNSCORED).sum(-1)
        mean = sum(nats * count for nats, count in zip(each, scored.tolist(), strict=True))
        assert mean / int(scored.sum()) == pytest.approx(without, abs=1e-6)


def test_importance_is_the_derivative_by_a_factor_of_the_output(model) -> None:
    decoder, batch = model
    found, step = removal.importance(GatedDecoder(decoder), batch), 1e-2
    for head in ORDER:
        more, less = (quality(scaled(decoder, head, one), batch)[0] for one in (1 + step, 1 - step))
        assert found[head] == pytest.approx(abs(more - less) / (2 * step), abs=5e-4, rel=0.05)
