"""What the heads of a decoder do on given sequences, as numbers per block and head.

All from the attention weights p [batch, heads, n, n] of each block, and from each head's output
o = p v [batch, heads, n, d_v].

    entropy_nats        -sum p log p, mean over queries: ln m for m tokens of equal weight
    distance_tokens     sum p (i - j), mean over queries: small for local heads, large for global
    distance_variance   the variance over sequences of that mean: how much a head itself varies
    previous_share      mean weight on the token before, of queries that have one
    induction_share     mean weight on tokens that follow an earlier occurrence of the query's own
                        token, of queries with such (Olsson et al. 2022, arXiv:2209.11895)
    output_rank         exp of the entropy of the squared singular values of the outputs of all
                        positions (effective rank, Roy and Vetterli 2007): 1 to d_v
    pattern_difference  Jensen-Shannon divergence of two heads' rows, in bits, 0 (equal) to 1; of
                        the first PAIRED sequences
    output_similarity   linear CKA of two heads' outputs (Kornblith et al. 2019, arXiv:1905.00414),
                        0 to 1 (equal but for rotation and scale)

    nearest_difference, nearest_similarity   to the other head that is most alike

The last four are to the other heads of the block, the first two of them means; None for one head.
"""

from math import isfinite
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear

from ...impls.modules.block import Block, Decoder

TINY = 1e-300
PAIRED = 8  # sequences whose patterns are compared: pairs of 64 heads are many
Numbers = list[list[float | None]]
"""[block][head]."""


class Heads(NamedTuple):
    """Of one block: weights [batch, heads, n, n] and outputs [batch, heads, n, d_v], float64."""

    weights: Tensor
    outputs: Tensor


def heads_of(model: Decoder, tokens: Tensor) -> list[Heads]:
    """For each block of a causal decoder."""
    found, x = [], model.embed(tokens)
    with torch.no_grad():
        for block in model.blocks:
            assert isinstance(block, Block)
            after, p = block(x, need_weights=True)
            assert p is not None
            w = block.attention.weights()
            batch, heads, n, _ = p.shape
            v = linear(block.norm_1(x), w.w_v, w.b_v).view(batch, n, heads, -1).transpose(1, 2)
            found.append(Heads(p.double(), p.double() @ v.double()))
            x = after
    return found


def metrics(blocks: list[Heads], tokens: Tensor) -> dict[str, Numbers]:
    """Each of the above, by name."""
    follows = followers(tokens)
    per_block = [_of_block(block, follows) for block in blocks]
    return {
        name: [[v if isfinite(v) else None for v in one[name].tolist()] for one in per_block]
        for name in per_block[0]
    }


def _of_block(block: Heads, follows: Tensor) -> dict[str, Tensor]:
    """[heads] each; not finite where a head has no such number."""
    p, o = block
    heads, n = p.shape[1], p.shape[2]
    place = torch.arange(n, device=p.device, dtype=p.dtype)
    distance = (place[:, None] - place[None]).clamp_min(0)
    of_sequences = (p * distance).sum(-1).mean(-1)  # [batch, heads]
    on_followers = (p * follows[:, None]).sum(-1).transpose(0, 1)  # [heads, batch, n]
    differences, similarities = pattern_differences(p[:PAIRED]), output_similarities(o)
    own = torch.eye(heads, dtype=torch.bool, device=p.device)
    return {
        "entropy_nats": entropy(p).mean((0, 2)),
        "distance_tokens": of_sequences.mean(0),
        "distance_variance": of_sequences.var(0, correction=0),
        "previous_share": p.diagonal(-1, 2, 3).mean((0, 2)),
        "induction_share": on_followers[:, follows.any(-1)].mean(1),
        "output_rank": effective_rank(o.transpose(0, 1).flatten(1, 2)),
        "pattern_difference": differences.masked_fill(own, 0).sum(1) / (heads - 1),
        "output_similarity": similarities.masked_fill(own, 0).sum(1) / (heads - 1),
        "nearest_difference": differences.masked_fill(own, torch.inf).amin(1),
        "nearest_similarity": similarities.masked_fill(own, -torch.inf).amax(1),
    }


def entropy(p: Tensor) -> Tensor:
    """In nats, of the last axis."""
    return -(p * p.clamp_min(TINY).log()).sum(-1)


def followers(tokens: Tensor) -> Tensor:
    """Whether key j follows an earlier occurrence of query i's token: [batch, n, n], j <= i."""
    same = tokens[:, :, None] == tokens[:, None, :]
    after = torch.zeros_like(same)
    after[:, :, 1:] = same[:, :, :-1]
    return after.tril()


def effective_rank(outputs: Tensor) -> Tensor:
    """Of each head's [positions, d_v], as [heads]; the mean is taken off. 0 if all are equal."""
    centred = outputs - outputs.mean(1, keepdim=True)
    squares = torch.linalg.svdvals(centred).square()  # [heads, d_v]
    total = squares.sum(-1, keepdim=True)
    return torch.where(
        total[:, 0] > 0, entropy(squares / total.clamp_min(TINY)).exp(), torch.zeros(()).to(total)
    )


def pattern_differences(p: Tensor) -> Tensor:
    """Mean Jensen-Shannon divergence of the rows of two heads, in bits: [heads, heads]."""
    own, heads = entropy(p).mean((0, 2)), p.shape[1]  # [heads]
    found = torch.zeros(heads, heads).to(p)
    for head in range(heads - 1):  # each pair once, since they are many
        both = entropy((p[:, head + 1 :] + p[:, head : head + 1]) / 2).mean((0, 2))
        found[head, head + 1 :] = both - (own[head + 1 :] + own[head]) / 2
    return (found + found.T) / torch.log(torch.tensor(2.0).to(p))


def output_similarities(o: Tensor) -> Tensor:
    """Linear CKA of the outputs of two heads over all positions: [heads, heads]."""
    x = o.transpose(0, 1).flatten(1, 2)  # [heads, positions, d_v]
    x = x - x.mean(1, keepdim=True)
    heads, _, width = x.shape
    flat = x.transpose(0, 1).flatten(1)  # [positions, heads * d_v]
    products = (flat.T @ flat).view(heads, width, heads, width).square().sum((1, 3))
    size = products.diagonal().sqrt()
    return products / (size[:, None] * size[None]).clamp_min(TINY)
