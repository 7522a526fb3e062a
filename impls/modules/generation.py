"""Generation of text, token by token, with and without a cache of keys and values.

Without a cache each step runs the whole causal pass again: step n costs O(n d^2 + n^2 d), and T
steps O(T^3). Keys and values of earlier tokens do not change, since no token sees later ones. Kept
in a cache, a step computes those of one token and reads the others: O(d^2 + n d), and O(T^2) for T
steps (Shazeer 2019, arXiv:1911.02150, section 2.3). The cache takes 2 n kv_heads d_k numbers per
block.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..backend import TORCH_DTYPE
from .block import Decoder


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
