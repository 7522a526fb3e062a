"""softmax(Q K^T / sqrt(d_k)) with plain operations, as `naive` and `fused` share it."""

from math import inf

import torch
from torch import Tensor

from .masks.tensors import kept, seen_rows
from .problem import Problem


def hidden_pairs(
    problem: Problem, device: torch.device, given: Tensor | None, copies: int = 1
) -> Tensor | None:
    """True where query i must not see key j; None where nothing is hidden.

    [copies * rows, kv_seq_len] where the mask is alike for all entries of the batch, else [batch,
    copies * rows or 1, kv_seq_len]; the rows are all queries but the leading ones that see nothing.
    Made inside the call: a mask takes time and memory like the scores, so neither may go
    unmeasured. Only a mask without a rule is `given` (masks.given).
    """
    if problem.mask == "none" and not problem.causal:
        return None
    rows = seen_rows(problem, device)
    if problem.mask == "none":
        return (
            torch.arange(problem.kv_seq_len, device=device)
            > (rows + problem.causal_offset).repeat(copies)[:, None]
        )
    seen = given[None] if given is not None else kept(problem, rows)
    assert seen is not None
    hidden = seen.logical_not()
    if copies > 1 and hidden.shape[1] > 1:
        hidden = hidden.repeat(1, copies, 1)
    return hidden[0] if hidden.shape[0] == 1 else hidden


def softmax_weights(s: Tensor, hidden: Tensor | None, scale: float) -> Tensor:
    """The weights for s = Q K^T, [..., n_q, n_kv]; `s` is used up. Two such matrices are alive at
    the peak: scores and weights.

    Scaling and masking work in place, which is safe under autograd: neither needs the values that
    it overwrites.
    """
    s.mul_(scale)
    if hidden is not None:
        s.masked_fill_(hidden, -inf)
    return torch.softmax(s, dim=-1)
