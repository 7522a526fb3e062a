"""A recurrent layer of the model's width in place of attention: torch.nn.GRU, O(N d^2) work in N
steps, one after the other.

It computes something else, so no exact result judges it: it is here for its latency, bytes and
utilization. It has weights of its own, drawn with a seed of its own from U(-1/sqrt(d), 1/sqrt(d))
as torch does, and sees the past alone, whether the problem is causal or not.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from .backend import TORCH_DTYPE, Call, Inputs, Weights
from .problem import Problem

EXACTNESS = "other"
SEED = 20140903  # of the weights, whatever the inputs' seed


def why_not(problem: Problem, device: torch.device) -> str | None:
    p = problem
    if p.scope == "core":
        return "a recurrent layer has no queries, keys and values; set scope: layer"
    if p.kv_seq_len != p.seq_len:
        return (
            f"a recurrent layer reads one sequence, and kv_seq_len ({p.kv_seq_len}) is not seq_len"
            f" ({p.seq_len})"
        )
    return (
        f"a recurrent layer carries every token on, and has no mask {p.mask}"
        if p.mask != "none"
        else None
    )


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    layer, x = recurrent(problem, inputs.query.device), inputs.query

    def call() -> Tensor:
        output: Tensor = layer(x)[0]
        return output

    call.parameters = tuple(layer.parameters())  # type: ignore[attr-defined]
    call.facts = {"cell": "GRU"}  # type: ignore[attr-defined]
    return call


def recurrent(problem: Problem, device: torch.device) -> torch.nn.GRU:
    """[batch, n, d_model] to the same. Drawn on the CPU in fp32: equal everywhere."""
    width = problem.d_model
    layer = torch.nn.GRU(
        width, width, batch_first=True, device=device, dtype=TORCH_DTYPE[problem.dtype]
    )
    generator = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(
                torch.empty(parameter.shape).uniform_(
                    -(width**-0.5), width**-0.5, generator=generator
                )
            )
    return layer.requires_grad_(problem.backward)


@contextmanager
def context(problem: Problem) -> Iterator[None]:
    """cuDNN rounds the products of fp32 to TF32 unless told not to, where torch's matmul
    does not.
    """
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.get_float32_matmul_precision() != "highest"
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before
