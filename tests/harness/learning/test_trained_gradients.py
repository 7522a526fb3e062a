"""trained_gradients: one token is the answer, and how its gradient fades."""

import math
from collections.abc import Sequence

import pytest
import torch

from attnbench.harness.learning.last_token import Recurrent, fade
from attnbench.harness.learning.studies import trained_gradients as study
from attnbench.harness.learning.studies.trained_gradients import (
    JUDGED,
    PARTS,
    SYMBOLS,
    TOKENS,
    Asked,
    answers,
    drawn,
    gradient_norms,
    judged,
    trained,
)
from attnbench.harness.learning.training import one_thread


def test_the_marked_token_is_the_answer_and_judged_sequences_differ_in_its_place_only() -> None:
    tokens, places = judged(0)
    wanted = answers(tokens, places)
    marked = (tokens >= SYMBOLS) & (tokens < 2 * SYMBOLS)
    assert marked.sum(-1).tolist() == [1] * len(tokens)
    assert torch.equal(marked.int().argmax(-1), places)
    assert torch.equal(tokens[marked] - SYMBOLS, wanted)
    assert set(tokens[:, -1].tolist()) == {2 * SYMBOLS}
    contents = tokens.sort(-1).values.view(TOKENS - 1, JUDGED, TOKENS)
    assert torch.equal(contents, contents[:1].expand_as(contents))
    drawn_tokens = drawn(torch.Generator().manual_seed(1), places)
    assert set(answers(drawn_tokens, places).tolist()) == set(range(SYMBOLS))


class Weighted(torch.nn.Module):
    """The sum of the tokens, each half as heavy as the next."""

    def forward(self, tokens: Sequence[torch.Tensor]) -> torch.Tensor:
        return sum(0.5**age * token for age, token in enumerate(reversed(tokens)))


def test_a_known_fade_is_found() -> None:
    norms = gradient_norms(Asked(Weighted()), 0)
    assert len(norms) == TOKENS - 1
    assert norms[0] == pytest.approx(2 * norms[1], rel=1e-5)
    assert fade(dict(enumerate(norms, 1))) == pytest.approx(math.log(0.5), abs=1e-5)


@pytest.mark.parametrize("radius", [0.5, 2.0])
def test_recurrent_weights_have_the_given_spectral_radius(radius: float) -> None:
    drawn = Recurrent(torch.nn.RNNCell, radius).cell.weight_hh.detach()
    assert float(torch.linalg.eigvals(drawn).abs().max()) == pytest.approx(radius, rel=1e-5)


def test_equal_seeds_give_equal_trainings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "STEPS", 3)
    with one_thread():
        for name in PARTS["model"]:
            one, other = (trained(name, 1).step_loss_nats for _ in range(2))
            assert one == pytest.approx(other, abs=1e-6, rel=0)


@pytest.mark.long
def test_a_trained_gru_keeps_more_of_the_gradient_than_an_untrained_one() -> None:
    with one_thread():
        found = trained("gru", 0)
    assert found.accuracy_ratio > 0.95
    assert found.fade_per_token_before < -0.2 < found.fade_per_token_after < 0
