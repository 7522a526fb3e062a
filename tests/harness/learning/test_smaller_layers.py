"""harness/learning/smaller_layers.py: layers without the weights of removed heads."""

import math

import pytest
import torch

from attnbench.harness.learning.checkpoints.gated import Head
from attnbench.harness.learning.pruning import every_head, losses_in_order, removed
from attnbench.harness.learning.smaller_layers import FIELDS, cost, smaller_layer, smaller_layers
from attnbench.harness.learning.synthetic_tasks import Batch, task
from attnbench.harness.learning.training import decoder, held_out, one_thread
from attnbench.impls.block import Decoder

CPU = torch.device("cpu")
HEADS = 4
ORDER = [
    Head(0, 2),
    Head(1, 0),
    Head(0, 1),
    Head(0, 3),
    Head(0, 0),
    *(Head(1, h) for h in (3, 1, 2)),
]


@pytest.fixture(scope="module")
def model() -> tuple[Decoder, Batch]:
    """Of two blocks; its biases are not 0, as after training."""
    of = task("copy")
    found = decoder(of, HEADS, CPU, 0)
    with torch.no_grad():
        for number, one in enumerate(found.parameters()):
            one.add_(0.1 * torch.randn(one.shape, generator=torch.Generator().manual_seed(number)))
    return found, Batch(*(one[:8] for one in held_out(of, 0, CPU)))


def test_a_smaller_layer_computes_what_the_whole_one_does_without_the_heads(model) -> None:
    decoder, batch = model
    block = decoder.own_blocks[0]
    x = block.norm_1(decoder.embed(batch.tokens))
    for gone in ([], [2], [0, 3], [0, 1, 2, 3]):
        kept = [head for head in range(HEADS) if head not in gone]
        with torch.no_grad(), removed(decoder, [Head(0, head) for head in gone]):
            wanted = block.attention(x, x, x)[0]
        with torch.no_grad():
            found = smaller_layer(block.attention, kept)(x)
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)


def test_heads_are_taken_from_their_own_block(model) -> None:
    decoder, batch = model
    x = decoder.embed(batch.tokens)
    first, second = smaller_layers(decoder, [Head(1, 0)])
    with torch.no_grad():
        torch.testing.assert_close(first(x), decoder.own_blocks[0].attention(x, x, x)[0])
        assert not torch.allclose(second(x), decoder.own_blocks[1].attention(x, x, x)[0])


def test_the_smaller_decoder_has_the_losses_of_the_pruned_one_and_takes_less(model) -> None:
    decoder, batch = model
    with one_thread():
        found = cost(decoder, ORDER, batch)
        losses = losses_in_order(decoder, ORDER, range(len(ORDER) + 1), batch)
    assert tuple(found) == FIELDS
    assert {len(values) for values in found.values()} == {len(every_head(decoder)) + 1}
    assert found["smaller_loss_nats"] == pytest.approx(losses, abs=1e-5)
    sizes, peaks = found["pruned_layer_weight_bytes"], found["pruned_layer_peak_bytes"]
    assert sizes == sorted(sizes, reverse=True)
    assert peaks[-1] < peaks[0]
    ends = [found[f"pruned_layer_time_{end}ratio"] for end in ("low_", "", "high_")]
    assert all(low <= value <= high for low, value, high in zip(*ends, strict=True))
    assert found["pruned_layer_time_ratio"][0] == 1
    assert all(math.isfinite(one) and one > 0 for one in found["pruned_layer_ms"])
