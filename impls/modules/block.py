"""A pre-norm transformer block and a small decoder around any exact backend.

    x_0     = E[tokens] + P                                embeddings and positions
    y       = x + MultiHead(LayerNorm(x))                  each block: attention ...
    Block(x) = y + W_2 GELU(W_1 LayerNorm(y) + b_1) + b_2  ... then the feed-forward layer
    logits  = LayerNorm(x_L) U^T

Vaswani et al. 2017 (section 3.1: residuals, 3.3: feed-forward of width 4 d, 3.5: positions),
arXiv:1706.03762. The normalisation stands before each part and once at the end, which trains
without warm-up: Xiong et al. 2020, arXiv:2002.04745. GELU: Hendrycks and Gimpel 2016,
arXiv:1606.08415. Learnt positions and embeddings of standard deviation 0.02: GPT-2 (Radford et al.
2019).
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..backend import TORCH_DTYPE
from ..problem import Problem
from .multi_head_attention import MultiHeadAttention

EMBEDDING_SD = 0.02


class Block(nn.Module):
    """[batch, n, d_model] to the same shape; batch and length of `problem` are ignored.

    Biases start at 0, matrices Xavier-uniform (Glorot and Bengio 2010), both from `seed`.
    """

    def __init__(
        self,
        problem: Problem,
        backend: str = "fused",
        device: torch.device | None = None,
        seed: int = 0,
        d_ff: int = 0,
    ) -> None:
        super().__init__()
        d, width = problem.d_model, d_ff or problem.d_ff
        where = _where(problem, device)
        self.norm_1 = nn.LayerNorm(d, **where)
        self.attention = MultiHeadAttention(problem, backend, device, seed)
        self.norm_2 = nn.LayerNorm(d, **where)
        self.up = _linear(d, width, seed + 1, where)
        self.down = _linear(width, d, seed + 2, where)
        for name in ("b_q", "b_k", "b_v", "b_o"):
            nn.init.zeros_(getattr(self.attention, name))

    def forward(self, x: Tensor, need_weights: bool = False) -> tuple[Tensor, Tensor | None]:
        """Output [batch, n, d_model] and, if requested, weights [batch, heads, n, n].

        Raises ValueError as MultiHeadAttention does.
        """
        n = self.norm_1(x)
        o, p = self.attention(n, n, n, need_weights=need_weights)
        y = x + o
        return y + self.feed_forward(self.norm_2(y)), p

    def feed_forward(self, x: Tensor) -> Tensor:
        """W_2 GELU(W_1 x + b_1) + b_2, for each position by itself."""
        out: Tensor = self.down(nn.functional.gelu(self.up(x)))
        return out


class Decoder(nn.Module):
    """Blocks between an embedding and logits; causal if `problem` is.

    The longest sequence is `problem.seq_len`; the batch comes from each call. Equal seeds give
    equal weights on every device.
    """

    def __init__(
        self,
        problem: Problem,
        vocabulary: int,
        depth: int = 2,
        backend: str = "fused",
        device: torch.device | None = None,
        seed: int = 0,
        d_ff: int = 0,
    ) -> None:
        super().__init__()
        d, where = problem.d_model, _where(problem, device)
        self.problem = problem
        # Seeds of parts are drawn, so that decoders of neighbouring seeds share no part.
        drawn = torch.randint(2**48, (depth + 3,), generator=torch.Generator().manual_seed(seed))
        embedding, position, logits, *blocks = map(int, drawn)
        self.embedding = _embedding(vocabulary, d, embedding, where)
        self.position = _embedding(problem.seq_len, d, position, where)
        self.blocks = nn.ModuleList(Block(problem, backend, device, part, d_ff) for part in blocks)
        self.norm = nn.LayerNorm(d, **where)
        self.logits = nn.utils.skip_init(nn.Linear, d, vocabulary, bias=False, **where)
        _draw(self.logits.weight, _normal, logits)

    @property
    def backend(self) -> str:
        """The name of the backend of all blocks; can be set."""
        return self.own_blocks[0].attention.backend

    @backend.setter
    def backend(self, name: str) -> None:
        for block in self.own_blocks:
            block.attention.backend = name

    def forward(self, tokens: Tensor, need_weights: bool = False) -> tuple[Tensor, list[Tensor]]:
        """Logits [batch, n, vocabulary] of tokens [batch, n], int64.

        And, if requested, each block's weights [batch, heads, n, n]; else none. Raises ValueError
        for sequences that are too long, and as MultiHeadAttention does.
        """
        x, maps = self.embed(tokens), []
        for block in self.own_blocks:
            x, p = block(x, need_weights=need_weights)
            if p is not None:
                maps.append(p)
        return self.logits(self.norm(x)), maps

    def embed(self, tokens: Tensor, first: int = 0) -> Tensor:
        """E[tokens] + P, [batch, n, d_model]; the first token is at position `first`."""
        n, longest = first + tokens.shape[1], self.problem.seq_len
        if n > longest:
            raise ValueError(
                f"a sequence of {n} tokens; wanted at most the problem's seq_len, {longest}"
            )
        x: Tensor = self.embedding(tokens) + self.position.weight[first:n]
        return x

    @property
    def own_blocks(self) -> list[Block]:
        return [block for block in self.blocks if isinstance(block, Block)]


def _where(problem: Problem, device: torch.device | None) -> dict[str, Any]:
    return {"device": device or torch.device("cpu"), "dtype": TORCH_DTYPE[problem.dtype]}


def _linear(columns: int, rows: int, seed: int, where: dict[str, Any]) -> nn.Linear:
    """A linear layer with Xavier-uniform weights and biases 0; leaves torch's generator alone."""
    layer: nn.Linear = nn.utils.skip_init(nn.Linear, columns, rows, **where)
    _draw(layer.weight, nn.init.xavier_uniform_, seed)
    nn.init.zeros_(layer.bias)
    return layer


def _embedding(rows: int, columns: int, seed: int, where: dict[str, Any]) -> nn.Embedding:
    layer: nn.Embedding = nn.utils.skip_init(nn.Embedding, rows, columns, **where)
    _draw(layer.weight, _normal, seed)
    return layer


def _normal(tensor: Tensor, generator: torch.Generator) -> Tensor:
    return tensor.normal_(std=EMBEDDING_SD, generator=generator)


def _draw(tensor: Tensor, fill: Callable[..., Tensor], seed: int) -> None:
    """Fill on the CPU in fp32: equal for equal seeds on every device."""
    if tensor.device.type == "meta":
        return
    with torch.no_grad():
        drawn = fill(torch.empty(tensor.shape), generator=torch.Generator().manual_seed(seed))
        tensor.copy_(drawn)
