"""trained_gradients: one token is the answer, and how its gradient fades."""

import json
import math
from collections.abc import Sequence

import pytest
import torch

from attnbench.harness.learning.last_token import fade
from attnbench.harness.learning.studies import trained_gradients as study
from attnbench.harness.learning.studies.trained_gradients import (
    BATCH,
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


def test_the_marked_token_is_the_answer_and_the_last_one_asks() -> None:
    places = torch.randint(TOKENS - 1, (BATCH,), generator=torch.Generator().manual_seed(0))
    tokens = drawn(torch.Generator().manual_seed(1), places)
    wanted = answers(tokens, places)
    marked = (tokens >= SYMBOLS) & (tokens < 2 * SYMBOLS)
    assert marked.sum(-1).tolist() == [1] * BATCH
    assert torch.equal(marked.int().argmax(-1), places)
    assert torch.equal(tokens[marked] - SYMBOLS, wanted)
    assert set(tokens[:, -1].tolist()) == {2 * SYMBOLS}


def test_judged_sequences_differ_in_the_place_of_the_marked_token_only() -> None:
    tokens, places = judged(0)
    assert tokens.shape == ((TOKENS - 1) * JUDGED, TOKENS)
    contents = tokens.sort(-1).values.view(TOKENS - 1, JUDGED, TOKENS)
    assert torch.equal(contents, contents[:1].expand_as(contents))
    wanted = answers(tokens, places)
    assert int(wanted.min()) >= 0
    assert int(wanted.max()) < SYMBOLS


class Weighted(torch.nn.Module):
    """The sum of the tokens, each half as heavy as the next."""

    def forward(self, tokens: Sequence[torch.Tensor]) -> torch.Tensor:
        return sum(0.5**age * token for age, token in enumerate(reversed(tokens)))


def test_a_known_fade_is_found() -> None:
    norms = gradient_norms(Asked(Weighted()), 0)
    assert len(norms) == TOKENS - 1
    assert norms[0] == pytest.approx(2 * norms[1], rel=1e-5)
    assert fade(dict(enumerate(norms, 1))) == pytest.approx(math.log(0.5), abs=1e-5)


@pytest.mark.parametrize("name", PARTS["model"])
def test_equal_seeds_give_equal_trainings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "STEPS", 3)
    with one_thread():
        one, other, third = (trained(name, seed) for seed in (1, 1, 2))
    assert one["step_loss_nats"] == pytest.approx(other["step_loss_nats"], abs=1e-6, rel=0)
    assert one["step_loss_nats"] != third["step_loss_nats"]
    stored = one.stored()
    assert json.loads(json.dumps(stored, allow_nan=False)) == stored


@pytest.mark.long
def test_a_trained_gru_keeps_more_of_the_gradient_than_an_untrained_one() -> None:
    with one_thread():
        found = trained("gru", 0)
    assert found["accuracy_ratio"] > 0.95
    assert found["fade_per_token_before"] < -0.2 < found["fade_per_token_after"] < 0
