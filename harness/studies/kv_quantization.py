"""How far off attention is over quantized keys and values, from that over the numbers before it."""

from collections.abc import Iterator

import torch
from torch import Generator, Tensor

from ...impls.backend import Inputs
from ...impls.problem import Problem
from ...impls.reference import reference
from ...impls.shared.kv_tensors import CODES, quantized
from ..measure.error_limits import distance
from ..rows.findings import Finding
from ._shared import mean_fields, normal

QUESTION = "How large is the error of int8 and fp8 keys, values, or both?"
SHOWN = {
    "map": "error_l2_ratio",
    "x": "kv_dtype",
    "y": "stored",
    "each": "keys_have_outliers",
    "value": "relative error of attention",
}
REPEATS = 8
QUERIES, KEYS = 16, 1024  # the last queries of the keys, and at most so many keys
OUTLIER_COLUMN, OUTLIER = 3, 10.0
"""Keys of trained models have a few columns that are about ten times as large as the others (Hooper
et al. 2024, KVQuant, arXiv:2401.18079, section 3.1)."""


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[Finding]:
    """Both attentions in float64. The mean over REPEATS draws, with its interval."""
    keys = min(problem.kv_seq_len, KEYS)
    head = Problem(
        batch=1,
        seq_len=min(QUERIES, keys),
        kv_seq_len=keys,
        d_model=problem.d_k,
        heads=1,
        d_k=problem.d_k,
        d_v=problem.d_v,
    )
    generator = Generator().manual_seed(seed)
    for kv_dtype in CODES:
        for outliers in (False, True):
            draws = [_drawn(head, generator, outliers=outliers) for _ in range(REPEATS)]
            for stored in (("key",), ("value",), ("key", "value")):
                errors = [_error(head, inputs, kv_dtype, stored) for inputs in draws]
                yield Finding(
                    kv_dtype=kv_dtype,
                    stored=" and ".join(f"{name}s" for name in stored),
                    keys_have_outliers=outliers,
                    d_k=head.d_k,
                    kv_seq_len=keys,
                    **mean_fields("error_l2_ratio", errors),
                )


def _drawn(head: Problem, generator: Generator, *, outliers: bool) -> Inputs:
    inputs = normal(head, torch.device("cpu"), generator)
    if outliers:
        inputs.key[..., min(OUTLIER_COLUMN, head.d_k - 1)] *= OUTLIER
    return inputs


def _error(head: Problem, inputs: Inputs, kv_dtype: str, stored: tuple[str, ...]) -> float:
    def read(name: str, tensor: Tensor) -> Tensor:
        if name not in stored:
            return tensor
        codes, scale = quantized(tensor, CODES[kv_dtype])
        return codes.double() * scale[..., None].double()

    others = Inputs(inputs.query, read("key", inputs.key), read("value", inputs.value))
    rows = torch.arange(head.seq_len)
    exact = reference(head, inputs, None, rows)
    return distance(reference(head, others, None, rows), exact)
