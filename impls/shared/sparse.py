"""Dense attention inside many blocks at once, for the sparse backends."""

from collections.abc import Callable

from torch import Tensor
from torch.nn.functional import pad

from ..problem import Problem
from .softmax import Softmax

Blocked = Callable[[Tensor], Tensor]
"""Maps keys or values [batch, kv_heads, n_kv, width] to those of each block of queries, [batch,
kv_heads, blocks, keys, width].
"""


def refuse_other_masks(mask: str, problem: Problem) -> str | None:
    """Why a backend that computes this one mask cannot compute the problem; None if it can."""
    if problem.mask == mask:
        return None
    return f"computes mask {mask} only, and the mask is {problem.mask}; set mask: {mask}"


def pad_tokens(x: Tensor, before: int, after: int) -> Tensor:
    """Add zeros before and after the tokens of [..., tokens, width]; negative numbers remove."""
    return pad(x, (0, 0, before, after)) if before or after else x


def attend_in_blocks(
    q: Tensor, k: Tensor, v: Tensor, blocked: Blocked, masked: Tensor, problem: Problem
) -> Tensor:
    """Softmax attention of q [batch, heads, blocks, rows, d_k] over the keys of each block.

    Returns [batch, heads, blocks, rows, d_v]. `masked` [blocks or 1, rows or 1, keys] is True for
    masked pairs and must leave each row a key: rows that only fill up a block see some zeros, since
    a softmax over nothing is NaN, which spreads through the gradients of keys.
    """
    p, (blocks, rows) = problem, q.shape[2:4]
    o = _softmax_qk(q, k, blocked, masked, p) @ blocked(v).flatten(0, 2)
    return o.view(p.batch, p.kv_heads, blocks, -1, rows, p.d_v).transpose(2, 3).flatten(1, 2)


def _softmax_qk(q: Tensor, k: Tensor, blocked: Blocked, masked: Tensor, p: Problem) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)) in each block, [batch * kv_heads * blocks, group * rows, keys].

    Heads that share keys become further rows against the same keys.
    """
    blocks, rows = q.shape[2:4]
    joined = q.unflatten(1, (p.kv_heads, -1)).transpose(2, 3)
    joined = joined.reshape(p.batch * p.kv_heads * blocks, -1, p.d_k)
    s = joined @ blocked(k).flatten(0, 2).mT
    del joined  # may be a copy, and the peak is still to come
    by_block = s.view(p.batch * p.kv_heads, blocks, -1, rows, s.shape[-1])
    softmax = Softmax(p, masked[:, None])
    return softmax.weights(softmax.scores(by_block)).view(s.shape)
