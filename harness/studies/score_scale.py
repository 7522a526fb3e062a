"""Why scores are divided by sqrt(d_k): otherwise their variance is d_k and the softmax one-hot.

Vaswani et al. 2017, section 3.2.1.
"""

from collections.abc import Iterator
from math import log, sqrt
from typing import Any

import torch

from ...impls.problem import Problem

QUESTION = "What does dividing by sqrt(d_k) do to the variance of the scores and to the softmax?"
WIDTHS = (8, 32, 64, 128, 512)
QUERIES, KEYS, REPEATS = 64, 256, 32
NORMAL_95 = 1.96
FP16_MOST = 65504.0
CERTAIN = 0.99


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[dict[str, Any]]:
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
            centre, reach = variances.mean(), NORMAL_95 * variances.std() / sqrt(REPEATS)
            weights = torch.softmax(scores, -1)
            entropy = -(weights * weights.clamp_min(1e-300).log()).sum(-1).mean() / log(KEYS)
            yield {
                "d_k": d_k,
                "scaled": scaled,
                "score_variance": float(centre),
                "score_variance_low": float(centre - reach),
                "score_variance_high": float(centre + reach),
                "entropy_ratio": float(entropy),
                "certain_row_ratio": float((weights.amax(-1) > CERTAIN).double().mean()),
                "fp16_overflow_ratio": float((scores.exp() > FP16_MOST).double().mean()),
            }
