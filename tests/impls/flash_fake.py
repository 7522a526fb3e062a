"""What kernels of FlashAttention compute, as they are documented, for fakes of their functions."""

import torch
from torch import Tensor


def attention(
    q: Tensor, k: Tensor, v: Tensor, scale: float, causal: bool, left: int, cap: float
) -> Tensor:
    """[n, heads, width], the triangle from the bottom right; right of it nothing, or as left."""
    q, k, v = (one.transpose(0, 1).float() for one in (q, k, v))
    k, v = (one.repeat_interleave(q.shape[0] // k.shape[0], 0) for one in (k, v))
    s = q @ k.mT * scale
    s = cap * torch.tanh(s / cap) if cap else s
    more = k.shape[1] - q.shape[1]
    seen = torch.ones(s.shape[1:], dtype=torch.bool).tril(more if causal else max(s.shape))
    if left >= 0:
        seen = seen.triu(more - left).tril(more + left)
    return (s.masked_fill(~seen, float("-inf")).softmax(-1) @ v).transpose(0, 1)
