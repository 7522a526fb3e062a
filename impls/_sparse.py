"""What the sparse backends share: queries and keys brought into blocks, and dense attention inside
every block at once.
"""

from collections.abc import Callable

from torch import Tensor
from torch.nn.functional import pad

from .problem import Mask, Problem
from .textbook import softmax_weights

Blocked = Callable[[Tensor], Tensor]
"""The keys or values [batch, kv_heads, n_kv, width] that belong to each block of queries: [batch,
kv_heads, blocks, keys, width].
"""


def wants(mask: Mask, problem: Problem) -> str | None:
    """Why a backend of this one mask refuses the problem; None where it does not."""
    if problem.mask == mask:
        return None
    return f"computes mask {mask} only, and the mask is {problem.mask}; set mask: {mask}"


def padded(x: Tensor, before: int, after: int) -> Tensor:
    """Zeros before and after the tokens of [..., tokens, width]; negative numbers take
    tokens away.
    """
    return pad(x, (0, 0, before, after)) if before or after else x


def within_blocks(
    q: Tensor, k: Tensor, v: Tensor, blocked: Blocked, hidden: Tensor, problem: Problem
) -> Tensor:
    """Softmax attention of q [batch, heads, blocks, rows, d_k] over its block's keys: [batch,
    heads, blocks, rows, d_v].

    `hidden` [blocks or 1, rows or 1, keys] is True where a pair does not count. Every row must be
    left a key: those that only fill up a block see some zeros, since a softmax over nothing is NaN,
    and in the gradients of keys NaN spreads.
    """
    p, (blocks, rows) = problem, q.shape[2:4]
    o = _weights(q, k, blocked, hidden, p) @ blocked(v).flatten(
        0, 2
    )  # [batch * kv_heads * blocks, group * rows, d_v]
    return o.view(p.batch, p.kv_heads, blocks, -1, rows, p.d_v).transpose(2, 3).flatten(1, 2)


def _weights(q: Tensor, k: Tensor, blocked: Blocked, hidden: Tensor, problem: Problem) -> Tensor:
    """[batch * kv_heads * blocks, group * rows, keys]: heads that share keys are further rows
    against the same keys.
    """
    p, (blocks, rows) = problem, q.shape[2:4]
    joined = (
        q.unflatten(1, (p.kv_heads, -1))
        .transpose(2, 3)
        .reshape(p.batch * p.kv_heads * blocks, -1, p.d_k)
    )
    s = joined @ blocked(k).flatten(0, 2).mT
    del joined  # may be a copy, and the peak is still to come
    weights = softmax_weights(
        s.view(p.batch * p.kv_heads, blocks, -1, rows, s.shape[-1]), hidden[:, None], p.scale
    )
    return weights.view(s.shape)
