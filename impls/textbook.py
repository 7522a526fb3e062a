"""softmax(Q K^T / sqrt(d_k)) with plain operations, as `naive` and `fused` share it."""

from math import inf

import torch
from torch import Tensor

from .problem import Problem


def hidden_pairs(problem: Problem, device: torch.device, copies: int = 1) -> Tensor | None:
    """True where query i must not see key j, [copies * (seq_len - empty_rows), kv_seq_len]; None where nothing is hidden.

    Made inside the call: a mask takes time and memory like the scores, so neither may go unmeasured.
    """
    if not problem.causal:
        return None
    last_seen = torch.arange(problem.empty_rows, problem.seq_len, device=device) + problem.causal_offset
    return torch.arange(problem.kv_seq_len, device=device) > last_seen.repeat(copies)[:, None]


def softmax_weights(s: Tensor, hidden: Tensor | None, scale: float) -> Tensor:
    """The weights for s = Q K^T, [..., n_q, n_kv]; `s` is used up. Two such matrices are alive at the peak: scores and weights.

    Scaling and masking work in place, which is safe under autograd: neither needs the values that it overwrites.
    """
    s.mul_(scale)
    if hidden is not None:
        s.masked_fill_(hidden, -inf)
    return torch.softmax(s, dim=-1)
