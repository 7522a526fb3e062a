"""harness/learning/training.py: what is trained, and that nothing but the heads differs."""

from collections.abc import Iterator

import pytest
import torch

from attnbench.harness.learning import training
from attnbench.harness.learning.synthetic_tasks import task
from attnbench.harness.learning.training import decoder, held_out, one_thread, quality, train

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _single() -> Iterator[None]:
    with one_thread():
        yield


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
        return train(decoder(task("majority"), 4, CPU, seed), task("majority"), 6, seed).losses

    assert losses(0) == pytest.approx(losses(0), abs=1e-6, rel=0)
    assert losses(0) != losses(1)


def test_training_lowers_the_loss_and_keeps_every_step() -> None:
    of = task("majority")
    model = decoder(of, 2, CPU, 0)
    before, _ = quality(model, held_out(of, 0, CPU))
    done = train(model, of, 30, 0)
    after, right = quality(model, held_out(of, 0, CPU))
    assert len(done.losses) == len(done.step_ms) == 30
    assert after < before - 0.1
    assert 0.5 < right <= 1
    assert done.peak_bytes is not None
    assert done.peak_bytes > sum(one.numel() * 4 for one in model.parameters())


def test_more_heads_need_more_bytes_for_a_step() -> None:
    of = task("majority")
    batch = of.draw(torch.Generator().manual_seed(0), training.BATCH)
    few, many = (training.step_bytes(decoder(of, heads, CPU, 0), batch) for heads in (1, 64))
    assert few is not None
    assert many is not None
    assert many > 2 * few
