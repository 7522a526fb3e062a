"""Where the heads of a causal model look: shares of the weight by where the key is.

    itself   the query's own token
    near     the NEAR_TOKENS tokens before it
    first    the first token
    far      all tokens between those

Means over the queries that have a far token, so that each query has keys of all four kinds and the
shares of a head sum to 1. Clark et al. 2019 (arXiv:1906.04341) count near tokens by layer; much
weight on the first token is an attention sink (Xiao et al. 2024, arXiv:2309.17453).
"""

import torch
from torch import Tensor

NEAR_TOKENS = 4
KINDS = ("itself", "near", "first", "far")


def shares(p: Tensor) -> dict[str, list[float]]:
    """By kind, of each head. `p`: weights [batch, heads, n, n]. {} if no query has a far token."""
    n, begin = p.shape[-1], NEAR_TOKENS + 2
    if n <= begin:
        return {}
    key = torch.arange(n, device=p.device)
    back = key[begin:, None] - key  # [queries, n]
    first, near = key == 0, (back > 0) & (back <= NEAR_TOKENS)
    keys = (back == 0, near, first.expand_as(near), (back > NEAR_TOKENS) & ~first)
    weights = p[:, :, begin:].double()
    found = [(weights * some).sum(-1).mean((0, 2)).tolist() for some in keys]
    return dict(zip(KINDS, found, strict=True))


def even_shares(n: int) -> list[float]:
    """In the order of KINDS, of a head that gives all tokens so far the same weight."""
    seen = torch.arange(1, n + 1)
    even = (torch.ones(n, n).tril() / seen[:, None])[None, None]
    return [share for kind in shares(even).values() for share in kind]
