"""Attention over one chunk of keys after the other, with a running softmax: the scores of one chunk
are alive at a time.

The bare name takes 256 keys at a time; `chunked:64` and `chunked:512` say how many.
"""

from math import inf

import torch

from attnbench.impls.layer import as_call

VARIANTS = ("64", "512")


def why_not(problem, device, *, variant):
    return "grouped heads are not implemented" if problem.kv_heads != problem.heads else None


def prepare(problem, inputs, weights, *, variant):
    size = int(variant or 256)
    offset = max(problem.causal_offset, 0)  # queries that see no key do not get here

    def attend(q, k, v):
        last_seen = torch.arange(q.shape[2], device=q.device)[:, None] + offset
        largest = q.new_full((*q.shape[:3], 1), -inf, dtype=torch.float32)
        total = output = 0.0
        for first in range(0, k.shape[2], size):
            s = (
                q @ k[:, :, first : first + size].mT
            ).float() * problem.scale  # [batch, heads, n_q, size]
            if problem.causal:
                keys = torch.arange(first, first + s.shape[3], device=q.device)
                s = s.masked_fill(keys > last_seen, -inf)
            before, largest = largest, torch.maximum(largest, s.amax(-1, keepdim=True))
            p, shrink = torch.exp(s - largest), torch.exp(before - largest)
            total = total * shrink + p.sum(-1, keepdim=True)
            output = output * shrink + p @ v[:, :, first : first + size].float()
        return (output / total).to(q.dtype)

    return as_call(problem, inputs, weights, attend)
