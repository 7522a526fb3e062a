"""FLOPs of a layer by number of heads, counted by torch while each backend runs."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from ...impls.discovery.loading import Backend
from ...impls.layer import make_weights
from ...impls.problem import Problem
from ...impls.shared.inputs import make_inputs
from ..rows.findings import Finding
from ._backends import exact_backends

QUESTION = "Do h heads of width d/h take the FLOPs of one head of width d, in each backend?"
HEADS, D_MODEL, TOKENS = (1, 2, 8), 128, 64
OF_CPU = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: (
        lambda q, k, v, *others, **named: sdpa_flop_count(q, k, v)
    )
}
"""The kernel that torch's counter does not know, with its formula for the others of its kind."""


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[Finding]:
    """`flops`: null if torch sees no more than the projections, as with a kernel in Triton."""
    projections = 8 * TOKENS * D_MODEL**2
    for heads in HEADS:
        core = Problem(batch=1, seq_len=TOKENS, d_model=D_MODEL, heads=heads, dtype=problem.dtype)
        layer = replace(core, scope="layer")
        for backend in exact_backends(layer, device):
            flops = counted(backend, layer, device, seed)
            yield Finding(
                backend=backend.name,
                heads=heads,
                d_model=D_MODEL,
                seq_len=TOKENS,
                flops=flops if flops > projections else None,
            )


@torch.no_grad()
def counted(backend: Backend, layer: Problem, device: torch.device, seed: int) -> int:
    """FLOPs of the operations that one call runs."""
    inputs, weights = make_inputs(layer, device, seed), make_weights(layer, device, seed)
    with backend.context(layer):
        call = backend.prepare(layer, inputs, weights)
        with FlopCounterMode(display=False, custom_mapping=OF_CPU) as counter:
            call()
    return int(counter.get_total_flops())
