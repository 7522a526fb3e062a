"""Attention over chunks of keys with an online softmax: only one chunk's scores are in memory.

The bare name uses chunks of 256 keys; `chunked:64` and `chunked:512` name other sizes.
"""

from math import inf

import torch

from attnbench.impls.layer import as_call

VARIANTS = ("64", "512")


def why_not(problem, device, *, variant):
    return "grouped heads are not implemented" if problem.kv_heads != problem.heads else None


def prepare(problem, inputs, weights, *, variant):
    size = int(variant or 256)
    offset = max(problem.causal_offset, 0)  # queries that see no key never get here

    def attend(q, k, v):  # [batch, heads, n_q, d_k], [batch, heads, n_kv, d_k | d_v]
        last_seen = torch.arange(q.shape[2], device=q.device)[:, None] + offset
        m_i = q.new_full((*q.shape[:3], 1), -inf, dtype=torch.float32)
        l_i = acc = 0.0
        for first in range(0, k.shape[2], size):
            chunk = slice(first, first + size)
            s = (q @ k[:, :, chunk].mT).float() * problem.scale  # [batch, heads, n_q, size]
            if problem.causal:
                keys = torch.arange(first, first + s.shape[3], device=q.device)
                s = s.masked_fill(keys > last_seen, -inf)
            m_old, m_i = m_i, torch.maximum(m_i, s.amax(-1, keepdim=True))
            p, alpha = torch.exp(s - m_i), torch.exp(m_old - m_i)
            l_i = l_i * alpha + p.sum(-1, keepdim=True)
            acc = acc * alpha + p @ v[:, :, chunk].float()
        return (acc / l_i).to(q.dtype)

    return as_call(problem, inputs, weights, attend, fills=True)
