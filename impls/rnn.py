"""A recurrent layer instead of attention: GRU, `rnn:lstm` or plain `rnn:tanh` of torch.nn.

It is as wide as the model, and takes O(N d^2) in N sequential steps. They compute something else,
so no reference checks them: they are here for their latency, bytes and utilization. Their own
weights are drawn with a fixed seed from U(-1/sqrt(d), 1/sqrt(d)), as torch does. They see the past
only, whether the problem is causal or not.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from .backend import TORCH_DTYPE, Call, Inputs, Weights
from .problem import Problem

EXACTNESS = "other"
VARIANTS = ("lstm", "tanh")
CELLS = {"": "GRU", "lstm": "LSTM", "tanh": "RNN"}  # by variant, as torch.nn names them
SEED = 20140903  # of the weights, independent of the inputs' seed


def why_not(problem: Problem, device: torch.device, *, variant: str) -> str | None:
    p = problem
    if p.scope == "core":
        return "a recurrent layer has no queries, keys and values; set scope: layer"
    if p.scope == "block":
        return "a recurrent layer is measured outside a block; set scope: layer"
    if p.kv_seq_len != p.seq_len:
        return (
            f"a recurrent layer reads one sequence: kv_seq_len ({p.kv_seq_len}) must equal seq_len"
            f" ({p.seq_len})"
        )
    if p.mask != "none":
        return f"a recurrent layer reads every token; leave out mask {p.mask}"
    return None


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None, *, variant: str) -> Call:
    layer, x = make_layer(problem, inputs.query.device, variant), inputs.query

    def call() -> Tensor:
        output: Tensor = layer(x)[0]  # [batch, seq_len, d_model]
        return output

    call.parameters = tuple(layer.parameters())  # type: ignore[attr-defined]
    call.facts = {"cell": CELLS[variant]}  # type: ignore[attr-defined]
    return call


def make_layer(problem: Problem, device: torch.device, variant: str = "") -> torch.nn.RNNBase:
    """[batch, n, d_model] to the same shape. Drawn on the CPU in fp32: equal on every device."""
    d, dtype = problem.d_model, TORCH_DTYPE[problem.dtype]
    cell = getattr(torch.nn, CELLS[variant])
    layer: torch.nn.RNNBase = cell(d, d, batch_first=True, device=device, dtype=dtype)
    generator, bound = torch.Generator().manual_seed(SEED), d**-0.5
    with torch.no_grad():
        for parameter in layer.parameters():
            drawn = torch.empty(parameter.shape).uniform_(-bound, bound, generator=generator)
            parameter.copy_(drawn)
    return layer.requires_grad_(problem.backward)


@contextmanager
def context(problem: Problem, *, variant: str) -> Iterator[None]:
    """Make cuDNN round fp32 products as torch's matmul does; by default cuDNN alone uses TF32."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.get_float32_matmul_precision() != "highest"
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before
