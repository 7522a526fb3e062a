"""Why scores are divided by sqrt(d_k): otherwise their variance is d_k and the softmax one-hot.

Vaswani et al. 2017, section 3.2.1. The derivative of a row p of the softmax by its scores is
diag(p) - p p^T; by the query it is that times the keys, and times the factor if there is one.
"""

from collections.abc import Iterator
from math import log, sqrt

import torch
from torch import Tensor

from ...impls.problem import Problem
from ..rows.findings import ScoreScale
from ._repeats import mean_fields

QUESTION = "What does dividing by sqrt(d_k) do to the variance of the scores and to the softmax?"
WIDTHS = (8, 32, 64, 128, 512)
QUERIES, KEYS, REPEATS = 64, 256, 32
FP16_MOST = 65504.0
CERTAIN = 0.99


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[ScoreScale]:
    """Queries and keys have independent entries of variance 1, as the paper assumes."""
    generator = torch.Generator().manual_seed(seed)
    for d_k in WIDTHS:
        q = torch.randn(REPEATS, QUERIES, d_k, generator=generator, dtype=torch.float64)
        k = torch.randn(REPEATS, KEYS, d_k, generator=generator, dtype=torch.float64)
        raw = q @ k.mT  # [repeat, query, key]
        for scaled in (False, True):
            scores = raw / sqrt(d_k) if scaled else raw
            # One per repeat: scores of a repeat share queries and keys.
            variances = scores.flatten(1).var(dim=1)
            weights = torch.softmax(scores, -1)
            by_score, by_query = _gradients(weights, k, 1 / sqrt(d_k) if scaled else 1.0)
            entropy = -(weights * weights.clamp_min(1e-300).log()).sum(-1).mean() / log(KEYS)
            yield ScoreScale(
                d_k=d_k,
                scaled=scaled,
                **mean_fields("score_variance", variances),
                **mean_fields("softmax_gradient", by_score),
                **mean_fields("query_gradient_norm", by_query),
                entropy_ratio=float(entropy),
                certain_row_ratio=float((weights.amax(-1) > CERTAIN).double().mean()),
                fp16_overflow_ratio=float((scores.exp() > FP16_MOST).double().mean()),
            )


def _gradients(p: Tensor, k: Tensor, factor: float) -> tuple[Tensor, Tensor]:
    """Per repeat: the mean size of an entry of d p / d s, and the norm of d p / d q per query.

    The sum of the entries' sizes is 2 (1 - sum p^2): on the diagonal p (1 - p), beside it p_i p_j.
    """
    squares = (p * p).sum(-1)  # [repeat, query]
    by_score = (2 * (1 - squares)).mean(1) / KEYS**2
    # Row i of J K is p_i (k_i - m), with the mean key m = sum p k.
    mean = p @ k  # [repeat, query, d_k]
    apart = (k * k).sum(-1)[:, None] - 2 * mean @ k.mT + (mean * mean).sum(-1, keepdim=True)
    by_query = factor * (p * p * apart.clamp_min(0)).sum(-1).sqrt().mean(1)
    return by_score, by_query
