"""harness/learning/studies/trained_projections.py: Linformer's projections inside a decoder."""

import pytest
import torch

from attnbench.harness.learning import training
from attnbench.harness.learning.studies.trained_projections import (
    KINDS,
    ProjectedAttention,
    project,
)
from attnbench.harness.learning.synthetic_tasks import task
from attnbench.impls.block import Decoder

CPU = torch.device("cpu")
TOKENS = 24


def decoder(*, causal: bool = False) -> Decoder:
    return training.decoder(task("recall", TOKENS), 4, CPU, 0, tokens=TOKENS, causal=causal)


@pytest.mark.parametrize("kind", ["trained", "pooled"])
def test_a_rank_of_all_tokens_can_be_exact(kind: str) -> None:
    """Means of one token each, and projections that are the identity, change nothing."""
    exact, projected = decoder(), decoder()
    project(projected, kind, TOKENS, 0)
    if kind == "trained":
        attention = projected.own_blocks[0].attention
        with torch.no_grad():
            attention.e.copy_(torch.eye(TOKENS) / attention.rate)
            attention.f.copy_(torch.eye(TOKENS) / attention.rate)
    tokens = task("recall").draw(torch.Generator().manual_seed(0), 3).tokens
    torch.testing.assert_close(projected(tokens)[0], exact(tokens)[0], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("kind", "learns"), [("trained", True), ("trained_from_random", True), ("random", False)]
)
def test_only_trained_projections_change_in_training(kind: str, learns: bool) -> None:
    of, model = task("recall"), decoder()
    project(model, kind, 6, 0)
    attention = model.own_blocks[0].attention
    assert isinstance(attention, ProjectedAttention)
    before = attention.e.detach().clone()
    training.train(model, of, 2, 0)
    assert torch.equal(before, attention.e) is not learns
    drawn = decoder()
    project(drawn, kind, 6, 0)
    assert torch.equal(before, drawn.own_blocks[0].attention.e), "equal seeds, equal projections"


@pytest.mark.parametrize("kind", KINDS)
def test_a_later_token_changes_earlier_answers_so_a_causal_model_is_refused(kind: str) -> None:
    model = decoder()
    project(model, kind, 6, 0)
    tokens = task("recall").draw(torch.Generator().manual_seed(0), 1).tokens
    other = tokens.clone()
    other[0, -1] = (tokens[0, -1] + 1) % 8
    assert not torch.equal(model(tokens)[0][0, 0], model(other)[0][0, 0])
    with pytest.raises(ValueError, match="mixtures of all tokens"):
        project(decoder(causal=True), kind, 6, 0)
