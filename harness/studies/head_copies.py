"""Whether merging the heads by view and transpose copies the output, and how many bytes."""

from collections.abc import Iterator
from functools import partial

import torch

from ...impls.backend import TORCH_DTYPE
from ...impls.layer import merge_heads
from ...impls.problem import Problem
from ..rows.findings import Finding
from ._shared import peak_bytes

QUESTION = "Are heads joined without a copy?"
HEADS = (1, 2, 8)
D_MODEL, MOST_TOKENS = 256, 512


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[Finding]:
    """Two layouts of a core's output, [batch, heads, n, width].

    Contiguous, as from a batched product, and as from a kernel that writes it merged.
    """
    tokens, dtype = min(problem.seq_len, MOST_TOKENS), TORCH_DTYPE[problem.dtype]
    for heads in HEADS:
        width = D_MODEL // heads
        batched = torch.zeros(1, heads, tokens, width, device=device, dtype=dtype)
        merged = torch.zeros(1, tokens, heads, width, device=device, dtype=dtype).transpose(1, 2)
        layouts = {"batched product": batched, "kernel that writes it merged": merged}
        for layout, output in layouts.items():
            yield Finding(
                layout=layout,
                heads=heads,
                copied_bytes=peak_bytes(partial(merge_heads, output), device),
                output_bytes=output.numel() * output.element_size(),
            )
