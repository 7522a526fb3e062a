"""What turns S = Q K^T into attention weights, in plain operations: scale, softcap, mask, sinks."""

from collections.abc import Callable
from math import inf
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..backend import Inputs
from ..problem import Problem
from .mask_tensors import computed_rows, mask_matrix, materialized_mask


class Softmax(NamedTuple):
    """In two steps, `weights(scores(s))`: a caller may keep its arguments alive until a call
    returns (all do while torch.compile watches frames), and would keep the scores beside both
    copies.
    """

    problem: Problem
    mask: Tensor | None = None
    """Broadcasts to S: bool, True for masked pairs; or a bias, to be added."""
    sink: Tensor | None = None
    """Broadcasts to a column beside S."""

    def scores(self, s: Tensor) -> Tensor:
        """Scaled, capped and masked s = Q K^T, [..., n_q, n_kv], with a column for the sink if
        there is one; overwrites `s`.

        In place where autograd needs none of the values that are overwritten, so that at the peak
        two such matrices are alive, scores and weights. The gradient of tanh needs its result: a
        third one is kept for it.
        """
        scale, cap = self.problem.scale, self.problem.softcap
        s.mul_(scale / cap if cap else scale)
        if cap:
            s.tanh_()
            s = s * cap if s.requires_grad else s.mul_(cap)
        if self.mask is not None:
            s = s.masked_fill_(self.mask, -inf) if self.mask.dtype == torch.bool else s + self.mask
        return s if self.sink is None else torch.cat((s, self.sink.expand(*s.shape[:-1], 1)), -1)

    def weights(self, s: Tensor) -> Tensor:
        """The attention weights of what `scores` returned; the sink's own weight is dropped."""
        p = torch.softmax(s, dim=-1)
        return p if self.sink is None else p[..., :-1]


def softmax_per_head(problem: Problem, inputs: Inputs) -> Callable[[], list[Softmax]]:
    """Of each head's S, [batch, n_q, n_kv].

    What is returned is called in the timed call: a mask takes time and memory like the scores.
    """
    p, device, given = problem, inputs.query.device, _given_mask(inputs)
    sinks = inputs.more["sinks"].unbind() if p.sinks else [None] * p.heads
    if given is not None:
        masks = given.expand(-1, p.heads, -1, -1).unbind(1)
        return lambda: [Softmax(p, *one) for one in zip(masks, sinks, strict=True)]
    matrix = materialized_mask(p, device)

    def made() -> list[Softmax]:
        masked = masked_pairs(p, device, matrix)
        return [Softmax(p, masked, sink) for sink in sinks]

    return made


def softmax_of_rows(problem: Problem, inputs: Inputs) -> Callable[[], Softmax]:
    """softmax_per_head of all heads at once, whose S is that of `group_rows`."""
    p, device, given = problem, inputs.query.device, _given_mask(inputs)
    if given is not None:
        rows = group_rows(given.expand(-1, p.heads, p.seq_len, -1), p.kv_heads)
        return lambda: Softmax(p, rows)
    matrix, n_q = materialized_mask(p, device), p.seq_len - p.empty_rows

    def made() -> Softmax:
        masked = masked_group_rows(p, device, matrix)
        if not p.sinks:
            return Softmax(p, masked)
        of_rows = inputs.more["sinks"][:, None].expand(-1, n_q)
        return Softmax(p, masked, of_rows.reshape(p.kv_heads, -1, 1))  # [.., group * n_q, 1]

    return made


def _given_mask(inputs: Inputs) -> Tensor | None:
    """As `Softmax.mask`."""
    mask = inputs.mask
    return ~mask if mask is not None and mask.dtype == torch.bool else mask


def group_rows(x: Tensor, kv_heads: int) -> Tensor:
    """[batch, heads, n_q, width] as [batch, kv_heads, group * n_q, width].

    Heads that share a key/value head become further rows against the same keys: no key is copied.
    """
    return x if x.shape[1] == kv_heads else x.reshape(len(x), kv_heads, -1, x.shape[3])


def masked_pairs(
    problem: Problem, device: torch.device, matrix: Tensor | None = None, copies: int = 1
) -> Tensor | None:
    """True where query i must not attend to key j; None if no pair is masked.

    [copies * rows, kv_seq_len] if the mask is the same for the whole batch, else [batch, copies *
    rows or 1, kv_seq_len]; the rows are those of computed_rows. A mask without a rule is `matrix`
    (mask_tensors.materialized_mask), made here if it is not given.
    """
    ragged = bool(problem.lengths)
    if problem.mask == "none" and not problem.causal and not ragged:
        return None
    rows = computed_rows(problem, device)
    if problem.mask == "none" and not ragged:
        keys = torch.arange(problem.kv_seq_len, device=device)
        return keys > (rows + problem.causal_offset).repeat(copies)[:, None]
    matrix = materialized_mask(problem, device) if matrix is None else matrix
    seen = matrix[None] if matrix is not None else mask_matrix(problem, rows)
    assert seen is not None
    masked = seen.logical_not()
    if copies > 1 and masked.shape[1] > 1:
        masked = masked.repeat(1, copies, 1)
    return masked[0] if masked.shape[0] == 1 else masked


def masked_group_rows(
    problem: Problem, device: torch.device, matrix: Tensor | None = None
) -> Tensor | None:
    """masked_pairs for group_rows: [group * n_q, n_kv] or [batch, 1, group * n_q or 1, n_kv]."""
    masked = masked_pairs(problem, device, matrix, copies=problem.heads // problem.kv_heads)
    return masked if masked is None or masked.dim() == 2 else masked[:, None]


# ---- inside many blocks at once, for the sparse backends -----------------------------------------

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
