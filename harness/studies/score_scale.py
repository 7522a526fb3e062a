"""Why scores are divided by sqrt(d_k): otherwise their variance is d_k and the softmax one-hot.

Vaswani et al. 2017, section 3.2.1. The derivative of a row p of the softmax by its scores is
diag(p) - p p^T; by the query it is that times the keys, and times the factor if there is one. With
the highest entropy all keys have equal weight, with none a single key has all of it.

That the variance is d_k follows if entries of queries and keys are independent with variance 1. So
it is looked for where that is not given: in layers at their first weights, and in the scores behind
the weights that backends use.
"""

from collections.abc import Callable, Iterator
from math import log, sqrt

import torch
from torch import Generator, Tensor

from ...impls.problem import Problem
from ..rows.findings import Finding
from ._backends import exact_backends, weights
from ._repeats import mean_fields

QUESTION = "What does dividing by sqrt(d_k) do to the variance of the scores and to the softmax?"
SHOWN = {
    "map": "entropy_ratio",
    "x": "d_k",
    "y": "scaled",
    "value": "share of the highest entropy",
}
WIDTHS = (8, 32, 64, 128, 512)
QUERIES, KEYS, REPEATS = 64, 256, 32
FP16_MOST = 65504.0
CERTAIN = 0.99
D_MODEL = 512
SEEN_WIDTH = 64  # of heads whose backends' weights are looked at; e^-60 is still a number in fp32
Draw = Callable[[int, Generator], Tensor]


def xavier(width: int, generator: torch.Generator) -> Tensor:
    return torch.nn.init.xavier_uniform_(torch.empty(width, width), generator=generator)


def _multihead_attention(width: int, generator: Generator) -> Tensor:
    """A third of the matrix that torch.nn.MultiheadAttention draws for q, k and v together."""
    joined = torch.empty(3 * width, width)
    return torch.nn.init.xavier_uniform_(joined, generator=generator)[:width]


def _linear(width: int, generator: Generator) -> Tensor:
    """As torch.nn.Linear draws its own."""
    return torch.nn.init.kaiming_uniform_(torch.empty(width, width), a=5**0.5, generator=generator)


LAYERS: dict[str, Draw] = {
    "Xavier, each projection": xavier,
    "nn.MultiheadAttention": _multihead_attention,
    "nn.Linear": _linear,
}


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[Finding]:
    """Queries and keys have independent entries of variance 1, as the paper assumes; or they are of
    tokens with such entries, as a layer norm leaves them, in the layer or backend named by `of`.
    """
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
            yield Finding(
                d_k=d_k,
                scaled=scaled,
                **mean_fields("score_variance", variances),
                **mean_fields("softmax_gradient", by_score),
                **mean_fields("query_gradient_norm", by_query),
                entropy_ratio=float(entropy),
                certain_row_ratio=float((weights.amax(-1) > CERTAIN).double().mean()),
                fp16_overflow_ratio=float((scores.exp() > FP16_MOST).double().mean()),
            )
    yield from _of_layers(generator)
    yield from _of_backends(device, generator)


def _of_layers(generator: Generator) -> Iterator[Finding]:
    for of, draw in LAYERS.items():
        drawn = [_projected(draw, generator) for _ in range(REPEATS)]
        for d_k in WIDTHS:
            raw = torch.stack([q[:, :d_k] @ k[:, :d_k].mT for q, k in drawn])
            for scaled in (False, True):
                variances = (raw / sqrt(d_k) if scaled else raw).flatten(1).var(dim=1)
                yield Finding(
                    d_k=d_k, scaled=scaled, of=of, **mean_fields("score_variance", variances)
                )


def _projected(draw: Draw, generator: Generator) -> tuple[Tensor, Tensor]:
    """Queries and keys [token, d_model] of all heads of a layer."""
    x = torch.randn(KEYS, D_MODEL, generator=generator)
    w_q, w_k = (draw(D_MODEL, generator) for _ in range(2))
    return (x[:QUERIES] @ w_q.mT).double(), (x @ w_k.mT).double()


def _of_backends(device: torch.device, generator: Generator) -> Iterator[Finding]:
    """Over the keys, ln of a row of weights differs from its scores by a constant.

    Queries that are sqrt(d_k) times as long undo the factor.
    """
    of = Problem(batch=REPEATS, seq_len=SEEN_WIDTH, d_model=SEEN_WIDTH, heads=1)
    shape = (REPEATS, 1, SEEN_WIDTH, SEEN_WIDTH)
    q, k = (torch.randn(shape, generator=generator).to(device) for _ in range(2))
    for backend in exact_backends(of, device):
        for scaled in (False, True):
            long = q if scaled else q * sqrt(SEEN_WIDTH)
            scores = weights(backend, of, long, k).double().log()
            yield Finding(
                d_k=SEEN_WIDTH,
                scaled=scaled,
                of=backend.name,
                **mean_fields("score_variance", scores.var(dim=-1).flatten(1).mean(1).cpu()),
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
