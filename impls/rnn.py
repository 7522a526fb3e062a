"""A recurrent layer of the model's width instead of attention: torch.nn.GRU, O(N d^2) in N
sequential steps.

It computes something else, so no reference checks it: it is here for its latency, bytes and
utilization. Its own weights are drawn with a fixed seed from U(-1/sqrt(d), 1/sqrt(d)), as torch
does. It sees the past only, whether the problem is causal or not.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from .backend import TORCH_DTYPE, Call, Inputs, Weights
from .problem import Problem

EXACTNESS = "other"
SEED = 20140903  # of the weights, independent of the inputs' seed


def why_not(problem: Problem, device: torch.device) -> str | None:
    p = problem
    if p.scope == "core":
        return "a recurrent layer has no queries, keys and values; set scope: layer"
    if p.scope == "block":
        return "a recurrent layer stands in no transformer block; set scope: layer"
    if p.kv_seq_len != p.seq_len:
        return (
            f"a recurrent layer reads one sequence, and kv_seq_len ({p.kv_seq_len}) is not seq_len"
            f" ({p.seq_len})"
        )
    if p.mask != "none":
        return f"a recurrent layer carries every token on, and has no mask {p.mask}"
    return None


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    gru, x = make_gru(problem, inputs.query.device), inputs.query

    def call() -> Tensor:
        output: Tensor = gru(x)[0]  # [batch, seq_len, d_model]
        return output

    call.parameters = tuple(gru.parameters())  # type: ignore[attr-defined]
    call.facts = {"cell": "GRU"}  # type: ignore[attr-defined]
    return call


def make_gru(problem: Problem, device: torch.device) -> torch.nn.GRU:
    """[batch, n, d_model] to the same shape. Drawn on the CPU in fp32: equal on every device."""
    d, dtype = problem.d_model, TORCH_DTYPE[problem.dtype]
    gru = torch.nn.GRU(d, d, batch_first=True, device=device, dtype=dtype)
    generator, bound = torch.Generator().manual_seed(SEED), d**-0.5
    with torch.no_grad():
        for parameter in gru.parameters():
            drawn = torch.empty(parameter.shape).uniform_(-bound, bound, generator=generator)
            parameter.copy_(drawn)
    return gru.requires_grad_(problem.backward)


@contextmanager
def context(problem: Problem) -> Iterator[None]:
    """Make cuDNN round fp32 products as torch's matmul does; by default cuDNN alone uses TF32."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.get_float32_matmul_precision() != "highest"
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before
