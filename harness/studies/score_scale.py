"""Why scores are divided by sqrt(d_k): otherwise their variance is d_k and the softmax one-hot.

Vaswani et al. 2017, section 3.2.1. The derivative of a row p of the softmax by its scores is
diag(p) - p p^T; by the query it is that times the keys, and times the factor if there is one. With
the highest entropy all keys have equal weight, with none a single key has all of it.

That the variance is d_k follows if entries of queries and keys are independent with variance 1. So
it is looked for where that is not given: in layers at their first weights, and in the scores behind
the weights that backends use.
"""

from collections.abc import Callable, Iterator, Sequence
from math import log, sqrt

import torch
from torch import Generator, Tensor, nn

from ...impls.problem import Problem
from ..rows.findings import Finding
from ._shared import exact_backends, mean_fields, normal, weights

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


def _xavier() -> list[Tensor]:
    return [nn.init.xavier_uniform_(torch.empty(D_MODEL, D_MODEL)) for _ in range(2)]


LAYERS: dict[str, Callable[[], Sequence[Tensor]]] = {
    "Xavier, each projection": _xavier,
    "nn.MultiheadAttention": lambda: nn.MultiheadAttention(D_MODEL, 1).in_proj_weight.chunk(3)[:2],
    "nn.Linear": lambda: [nn.Linear(D_MODEL, D_MODEL).weight for _ in range(2)],
}
"""Their first weights of queries and keys, from torch's own random numbers."""


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[Finding]:
    """Queries and keys have independent entries of variance 1, as the paper assumes; or they are of
    tokens with such entries, as a layer norm leaves them, in the layer or backend named by `of`.
    """
    generator = Generator().manual_seed(seed)
    for d_k in WIDTHS:
        q, k = (
            torch.randn(REPEATS, count, d_k, generator=generator, dtype=torch.float64)
            for count in (QUERIES, KEYS)
        )
        for scaled, factor in _factors(d_k):
            scores = factor * (q @ k.mT)  # [repeat, query, key]
            p = torch.softmax(scores, -1)
            by_score, by_query = _gradients(p, k, factor)
            entropy = -(p * p.clamp_min(1e-300).log()).sum(-1).mean() / log(KEYS)
            yield Finding(
                d_k=d_k,
                scaled=scaled,
                of="independent entries",
                **_variance(scores),
                **mean_fields("softmax_gradient", by_score),
                **mean_fields("query_gradient_norm", by_query),
                entropy_ratio=float(entropy),
                certain_row_ratio=float((p.amax(-1) > CERTAIN).double().mean()),
                fp16_overflow_ratio=float((scores.exp() > FP16_MOST).double().mean()),
            )
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        for of, draw in LAYERS.items():
            q, k = _projected(draw)
            for d_k in WIDTHS:
                for scaled, factor in _factors(d_k):
                    scores = factor * (q[..., :d_k] @ k[..., :d_k].mT)
                    yield Finding(d_k=d_k, scaled=scaled, of=of, **_variance(scores))
    yield from _of_backends(device, generator)


def _factors(d_k: int) -> tuple[tuple[bool, float], ...]:
    """Of scores that are not scaled, and of those that are."""
    return (False, 1.0), (True, 1 / sqrt(d_k))


def _variance(scores: Tensor) -> dict[str, float]:
    """One per repeat [repeat, query, key]: scores of a repeat share queries and keys."""
    return mean_fields("score_variance", scores.flatten(1).var(dim=1))


@torch.no_grad()
def _projected(draw: Callable[[], Sequence[Tensor]]) -> tuple[Tensor, Tensor]:
    """Queries and keys [repeat, token, d_model] of all heads of a layer, drawn anew each time."""
    x = torch.randn(REPEATS, KEYS, D_MODEL)
    drawn = [draw() for _ in range(REPEATS)]
    w_q, w_k = (torch.stack(several) for several in zip(*drawn, strict=True))
    return (x[:, :QUERIES] @ w_q.mT).double(), (x @ w_k.mT).double()


def _of_backends(device: torch.device, generator: Generator) -> Iterator[Finding]:
    """Over the keys, ln of a row of weights differs from its scores by a constant.

    Queries that are sqrt(d_k) times as long undo the factor.
    """
    of = Problem(batch=REPEATS, seq_len=SEEN_WIDTH, d_model=SEEN_WIDTH, heads=1)
    q, k, _ = normal(of, device, generator)
    for backend in exact_backends(of, device):
        for scaled in (False, True):
            long = q if scaled else q * sqrt(SEEN_WIDTH)
            scores = weights(backend, of, long, k).double().log()
            found = mean_fields("score_variance", scores.var(dim=-1).flatten(1).mean(1))
            yield Finding(d_k=SEEN_WIDTH, scaled=scaled, of=backend.name, **found)


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
