"""The worked example: attention on three tokens by hand, and what masks do to it.

Each score is the scalar product of a query and a key, divided by the square root of their width, 4.
A softmax makes each row of scores positive with the sum 1. Each output is the mean of the values
under these weights. Null or "–" is a score that a boolean mask removes. Fills of -1e9 have the same
effect, since exp of them is 0, except where a query has nothing else: then they are equal scores
and give equal weights, while a query that sees no key has the output 0.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import inf, isinf

import torch
from torch import Tensor

from ...impls import load
from ...impls.backend import TORCH_DTYPE
from ...impls.problem import Problem
from ...impls.shared.mask_tensors import given_mask
from ..rows.findings import Finding

QUESTION = "What does attention give on three tokens, step by step, and what do masks change?"
Rows = list[list[float | None]]
BACKENDS = ("naive", "fused", "sdpa")
QUERIES: Rows = [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 1]]
KEYS: Rows = [[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 1, 1]]
VALUES: Rows = [[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 1]]
TOKENS = Problem(batch=1, seq_len=3, d_model=4, heads=1)

SEEN = torch.ones(3, 3, dtype=torch.bool)
FIRST_SEES_NOTHING = SEEN.clone()
FIRST_SEES_NOTHING[0] = False
MASKS: dict[str, Tensor] = {
    "none": SEEN,
    "causal, True = attend": SEEN.tril(),
    "causal, -1e9 added": torch.zeros(3, 3).masked_fill(SEEN.triu(1), -1e9),
    "token 1 sees nothing, False": FIRST_SEES_NOTHING,
    "token 1 sees nothing, -1e9 added": torch.zeros(3, 3).masked_fill(~FIRST_SEES_NOTHING, -1e9),
}


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[Finding]:
    """Per mask `score_rows`, `weight_rows` and `output_rows`, [query][key or column], in fp32.

    Numbers near 1e9 are 64 apart there: a score of 0.5 beside -1e9 is lost. A score that the mask
    removes is null. `worst_error`: the largest absolute difference of a backend's outputs, in the
    problem's dtype on its device. Nothing here is random.
    """
    q, k, v = (torch.tensor(rows, dtype=torch.float32) for rows in (QUERIES, KEYS, VALUES))
    for name, mask in MASKS.items():
        given, empty = (one[0, 0] for one in given_mask(mask, TOKENS, torch.float32))
        s = q @ k.mT * TOKENS.scale  # [query, key]
        shown = s.masked_fill(~mask, -inf) if mask.dtype == torch.bool else s + mask
        used = s.masked_fill(~given, -inf) if given.dtype == torch.bool else s + given
        p = torch.softmax(used, -1).masked_fill(empty, 0.0)
        o = p @ v  # [query, column]
        yield Finding(
            mask=name,
            query_rows=QUERIES,
            key_rows=KEYS,
            value_rows=VALUES,
            score_rows=_finite(shown),
            weight_rows=p.tolist(),
            output_rows=o.tolist(),
            backends=list(BACKENDS),
            dtype=problem.dtype,
            worst_error=max(_error(name, o, mask, problem, device) for name in BACKENDS),
        )


def _error(name: str, exact: Tensor, mask: Tensor, problem: Problem, device: torch.device) -> float:
    backend, example = load(name), replace(TOKENS, dtype=problem.dtype)
    dtype = TORCH_DTYPE[problem.dtype]
    q, k, v = (
        torch.tensor(rows, dtype=dtype, device=device)[None, None]
        for rows in (QUERIES, KEYS, VALUES)
    )
    given, empty = given_mask(mask.to(device), example, dtype)
    with torch.no_grad(), backend.context(example):
        o = backend.under_mask(example, q, k, v, given).masked_fill(empty, 0.0)
    return float((o[0, 0].double().cpu() - exact.double()).abs().max())


def _finite(rows: Tensor) -> Rows:
    return [[None if isinf(number) else number for number in row] for row in rows.tolist()]
