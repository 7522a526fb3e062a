"""Attention that is wrong in little: by five times the textbook error (`rounding`), in one late
row, in one tile of 16 rows, by a key too many for causal queries, or without the last key.
"""

import torch

VARIANTS = ("rounding", "row", "tile", "key_too_many", "last_key")
TEXTBOOK_ERROR = 2.5e-7  # relative, of fp32 at the lengths of the tests


def prepare(problem, inputs, weights, *, variant):
    def call():
        q, k, v = inputs
        n = k.shape[-2]
        seen = torch.ones(q.shape[-2], n, dtype=torch.bool)
        if problem.causal:
            seen = seen.tril(1 if variant == "key_too_many" else 0)
        if variant == "last_key":
            seen[:, -1] = False
        scores = (q @ k.mT * problem.scale).masked_fill(~seen, float("-inf"))
        out = scores.softmax(-1) @ v
        if variant == "rounding":
            out *= 1 + 5 * TEXTBOOK_ERROR
        elif variant == "row":
            out[..., n * 3 // 4 + 5, :] *= 1.01
        elif variant == "tile":
            out[..., n * 3 // 4 : n * 3 // 4 + 16, :] *= 1.01
        return out

    return call
