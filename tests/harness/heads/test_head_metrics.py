"""harness/heads/head_metrics.py: each metric on patterns whose value is known."""

from math import log

import pytest
import torch
from torch import Tensor

from attnbench.harness.heads.findings import CheckpointHeads
from attnbench.harness.heads.head_metrics import (
    Heads,
    effective_rank,
    followers,
    heads_of,
    metrics,
    output_similarities,
    pattern_differences,
)
from attnbench.harness.heads.synthetic_tasks import task
from attnbench.harness.heads.training import decoder

N = 8
TOKENS = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3]])


def stacked(*patterns: Tensor) -> Tensor:
    return torch.stack(patterns)[None].double()


def own() -> Tensor:
    return torch.eye(N)


def previous() -> Tensor:
    """The first query sees itself only."""
    pattern = torch.zeros(N, N)
    pattern[0, 0] = 1
    pattern[1:] = torch.eye(N)[:-1]
    return pattern


def uniform() -> Tensor:
    pattern = torch.ones(N, N).tril()
    return pattern / pattern.sum(-1, keepdim=True)


def found(*patterns: Tensor) -> dict[str, list]:
    p = stacked(*patterns)
    values = torch.randn(1, 1, N, 3, generator=torch.Generator().manual_seed(0)).double()
    return {name: of[0] for name, of in metrics([Heads(p, p @ values)], TOKENS).items()}


def test_known_patterns_have_their_entropy_distance_and_share() -> None:
    of = found(own(), previous(), uniform())
    assert of["entropy_nats"][:2] == [0, 0]
    assert of["entropy_nats"][2] == pytest.approx(sum(log(m) for m in range(1, N + 1)) / N)
    assert of["distance_tokens"] == pytest.approx([0, (N - 1) / N, (N - 1) / 4])
    assert of["previous_share"][:2] == [0, 1]


def test_an_induction_head_looks_at_what_followed_the_same_token() -> None:
    induction = torch.zeros(N, N)
    for query in range(N):
        induction[query, query - 3 if query >= 4 else query] = 1  # 4 back, and one on
    assert followers(TOKENS)[0, 4].nonzero().flatten().tolist() == [1]
    assert found(induction, own())["induction_share"] == pytest.approx([1, 0])


def test_equal_heads_do_not_differ_and_disjoint_ones_differ_by_one_bit() -> None:
    bits = pattern_differences(stacked(own(), own(), previous()))
    assert float(bits[0, 1]) == pytest.approx(0, abs=1e-12)
    assert float(bits[0, 2]) == pytest.approx((N - 1) / N)  # the first row is the same
    assert torch.allclose(bits, bits.T)


def test_outputs_are_similar_if_one_is_the_other_turned_and_scaled() -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(1, 1, 400, 4, generator=generator).double()
    turn = torch.linalg.qr(torch.randn(4, 4, generator=generator).double()).Q
    other = torch.randn(1, 1, 400, 4, generator=generator).double()
    similar = output_similarities(torch.cat([x, 3 * x @ turn, other], 1))
    assert float(similar[0, 1]) == pytest.approx(1)
    assert float(similar[0, 2]) < 0.1


def test_the_rank_counts_directions() -> None:
    generator = torch.Generator().manual_seed(1)
    line = torch.randn(500, 1, generator=generator).double() @ torch.ones(1, 6).double()
    full = torch.linalg.qr(torch.randn(500, 6, generator=generator).double()).Q
    flat = torch.ones(500, 6).double()
    ranks = effective_rank(torch.stack([line, full, flat]))
    assert ranks.tolist() == pytest.approx([1, 6, 0], abs=0.05)


def test_outputs_of_the_heads_give_what_the_layer_gives() -> None:
    of = task("copy")
    model = decoder(of, 4, torch.device("cpu"), 0)
    batch = of.draw(torch.Generator().manual_seed(0), 3)
    blocks = heads_of(model, batch.tokens)
    x = model.embed(batch.tokens)
    normed = model.blocks[0].norm_1(x)
    whole, _ = model.blocks[0].attention(normed, normed, normed)
    w = model.blocks[0].attention.weights()
    joined = blocks[0].outputs.transpose(1, 2).flatten(2).float()
    torch.testing.assert_close(joined @ w.w_o.T + w.b_o, whole, atol=1e-5, rtol=1e-4)
    assert len(blocks) == 2
    assert metrics(blocks, batch.tokens).keys() <= CheckpointHeads.model_fields.keys()
