"""A trained model whose heads can be weakened one by one: a factor for the output of each.

The factor g of a head is 1 as a rule and 0 for a head that is removed; |d loss / d g| is its
importance (Michel et al. 2019, arXiv:1905.10650).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from torch import Tensor
from torch.func import functional_call

from ...impls.block import Decoder
from . import head_metrics
from .head_metrics import Heads


class Head(NamedTuple):
    """`block`: which of the layers with attention."""

    block: int
    head: int


Gates = Sequence[Tensor]
"""A factor for each head, [heads], of each layer with attention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What is said of a model beside what it does.

    `layers`: the number of each layer with attention, as the model counts; `longest`: tokens of a
    sequence that it takes; None: no limit is known. `trained`: what its file says of its training.
    """

    format: str
    model_type: str
    d_model: int
    kv_heads: int
    vocabulary: int
    parameter_count: int
    layers: tuple[int, ...]
    longest: int | None
    trained: dict[str, str]


class Gated(Protocol):
    """Of `heads`: how many each layer with attention has."""

    about: About
    heads: list[int]

    def logits(self, tokens: Tensor, gates: Gates | None = None) -> Tensor:
        """[batch, n, vocabulary] of tokens [batch, n]; with gates, differentiable by them."""

    def looked_at(self, tokens: Tensor) -> list[Heads]:
        """Weights [batch, heads, n, n] and outputs [batch, heads, n, d_v] of each layer."""


class GatedDecoder:
    """A decoder of impls/block.py. A factor scales a head's columns of W_O."""

    def __init__(self, model: Decoder, trained: dict[str, str] | None = None) -> None:
        self.model, problem = model, model.problem
        self.heads = [problem.heads] * len(model.own_blocks)
        self.about = About(
            format="attnbench",
            model_type="decoder",
            d_model=problem.d_model,
            kv_heads=problem.kv_heads,
            vocabulary=model.embedding.num_embeddings,
            parameter_count=sum(one.numel() for one in model.parameters()),
            layers=tuple(range(len(self.heads))),
            longest=problem.seq_len,
            trained=trained or {},
        )

    def logits(self, tokens: Tensor, gates: Gates | None = None) -> Tensor:
        if gates is None:
            whole: Tensor = self.model(tokens)[0]
            return whole
        width = self.model.problem.d_v
        scaled = {
            f"blocks.{number}.attention.w_o": block.attention.weights().w_o
            * gate.repeat_interleave(width)
            for number, (block, gate) in enumerate(zip(self.model.own_blocks, gates, strict=True))
        }
        found: tuple[Tensor, list[Tensor]] = functional_call(self.model, scaled, (tokens,))
        return found[0]

    def looked_at(self, tokens: Tensor) -> list[Heads]:
        return head_metrics.heads_of(self.model, tokens)
