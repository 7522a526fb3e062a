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
from dataclasses import dataclass
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


# ---- generation of text, token by token ----------------------------------------------------------
# Without a cache of keys and values each step runs the whole causal pass again: step n costs
# O(n d^2 + n^2 d), and T steps O(T^3). Keys and values of earlier tokens do not change, since no
# token sees later ones. Kept in a cache, a step computes those of one token and reads the others:
# O(d^2 + n d), and O(T^2) for T steps (Shazeer 2019, arXiv:1911.02150, section 2.3). The cache
# takes 2 n kv_heads d_k numbers per block.


@dataclass(slots=True, kw_only=True)
class Cache:
    """Keys [batch, kv_heads, longest, d_k] and values [..., d_v] of each block.

    The first `length` tokens are filled in.
    """

    keys: list[Tensor]
    values: list[Tensor]
    length: int = 0


def empty_cache(decoder: Decoder, batch: int, longest: int) -> Cache:
    p, device = decoder.problem, decoder.embedding.weight.device

    def buffers(width: int) -> list[Tensor]:
        shape = (batch, p.kv_heads, longest, width)
        return [
            torch.empty(shape, dtype=TORCH_DTYPE[p.dtype], device=device) for _ in decoder.blocks
        ]

    return Cache(keys=buffers(p.d_k), values=buffers(p.d_v))


def extend(decoder: Decoder, tokens: Tensor, cache: Cache) -> Tensor:
    """Logits [batch, n, vocabulary] of tokens [batch, n] that follow those of the cache.

    Adds them to the cache. Raises ValueError if they are too many for the cache or the decoder, and
    as MultiHeadAttention.extend does.
    """
    end, longest = cache.length + tokens.shape[1], cache.keys[0].shape[2]
    if end > longest:
        raise ValueError(f"{end} tokens in a cache; wanted at most {longest}, its length")
    x = decoder.embed(tokens, first=cache.length)
    for block, keys, values in zip(decoder.own_blocks, cache.keys, cache.values, strict=True):
        y = x + block.attention.extend(block.norm_1(x), keys, values, cache.length)
        x = y + block.feed_forward(block.norm_2(y))
    cache.length = end
    logits: Tensor = decoder.logits(decoder.norm(x))
    return logits


@torch.no_grad()
def generate(
    decoder: Decoder, prompt: Tensor, steps: int, *, cached: bool
) -> tuple[Tensor, Tensor]:
    """The likeliest token `steps` times over: tokens [batch, n + steps], and the logits that chose
    them, [batch, steps, vocabulary].

    The first step computes the whole prompt, [batch, n] (prefill).
    """
    tokens, chosen = prompt, []
    cache = empty_cache(decoder, prompt.shape[0], prompt.shape[1] + steps) if cached else None
    for _ in range(steps):
        if cache is None:
            logits = decoder(tokens)[0]
        else:
            logits = extend(decoder, tokens[:, cache.length :], cache)
        chosen.append(logits[:, -1])
        tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], 1)
    return tokens, torch.stack(chosen, 1)


def step_flops(decoder: Decoder, n: int, *, cached: bool) -> int:
    """FLOPs of the matrix products of the step that chooses token n + 1, for one sequence.

    Without a cache those of a causal pass over n tokens, whose masked scores do not count.
    """
    p, new = decoder.problem, 1 if cached else n
    pairs = n if cached else n * (n + 1) // 2
    queries, keys = p.heads * (p.d_k + p.d_v), p.kv_heads * (p.d_k + p.d_v)
    d_ff, vocabulary = decoder.own_blocks[0].up.out_features, decoder.logits.out_features
    per_token = p.d_model * (queries + keys) + 2 * p.d_model * d_ff
    block = 2 * (new * per_token + pairs * queries)
    return int(len(decoder.blocks) * block + 2 * new * p.d_model * vocabulary)
