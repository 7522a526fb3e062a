"""A training step of Decoder against the same model written plainly in torch: within 5 %, paired.

About 20 seconds. `make bench` runs it; a ratio means something on an idle machine only.
"""

from collections.abc import Callable
from statistics import median
from time import perf_counter

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, scaled_dot_product_attention

from attnbench.impls import Decoder, Problem

D, HEADS, N, VOCABULARY, DEPTH = 64, 4, 64, 32, 2
MOST_RATIO = 1.05
PAIRS = 60


class PlainAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            part(x).view(*x.shape[:2], HEADS, -1).transpose(1, 2)
            for part in (self.q, self.k, self.v)
        )
        o = scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(o.transpose(1, 2).flatten(2))


class PlainBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attention = PlainAttention()
        self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm_1(x))
        return x + self.down(gelu(self.up(self.norm_2(x))))


class PlainDecoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.position = nn.Embedding(VOCABULARY, D), nn.Embedding(N, D)
        self.blocks = nn.ModuleList(PlainBlock() for _ in range(DEPTH))
        self.norm, self.logits = nn.LayerNorm(D), nn.Linear(D, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens) + self.position.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.logits(self.norm(x))


def step_of(
    model: nn.Module, forward: Callable[[Tensor], Tensor], batch: int
) -> Callable[[], None]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = torch.randint(VOCABULARY, (batch, N))

    def step() -> None:
        loss = cross_entropy(forward(tokens).flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


@pytest.mark.parametrize("batch", [8, 32])
def test_a_training_step_is_as_fast_as_in_plain_torch(batch: int) -> None:
    shape = Problem(batch=1, seq_len=N, d_model=D, heads=HEADS, causal=True)
    ours, plain = Decoder(shape, VOCABULARY, DEPTH, "sdpa"), PlainDecoder()
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in plain.parameters())
    steps = step_of(ours, lambda tokens: ours(tokens)[0], batch), step_of(plain, plain, batch)
    ratios = []
    for pair in range(PAIRS + 5):
        times = []
        for step in steps if pair % 2 else steps[::-1]:
            start = perf_counter()
            step()
            times.append(perf_counter() - start)
        ratios.append(times[0] / times[1] if pair % 2 else times[1] / times[0])
    assert median(ratios[5:]) <= MOST_RATIO
