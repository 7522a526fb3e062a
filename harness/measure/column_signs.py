"""New values of inputs by the signs of whole columns: exact, without a copy, and undone exactly.

In scope "core" the result is known without computing it. A column of q and the same column of k
with other signs leave every score as it is. A column of v with another sign changes the sign of
that column of the output, and nothing else. So such a problem has 2 to the power of its columns
inputs, unlike each other in half of their numbers, whose outputs and gradients follow exactly, to
the bit, from one that was checked. It holds for exact attention only: what approximates it may mix
columns.

In a layer the columns are those of its inputs, and of a backward pass alone those of the output's
gradient. There nobody knows the result.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ...impls.backend import TORCH_DTYPE
from ...impls.problem import Problem

FEWEST_COLUMNS = 16  # whose result is unknown: values that came twice would look like a cache


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSigns:
    """Factors 1 and -1, [batch, heads, 1, columns] or, in a layer, [batch, 1, columns].

    `inputs`: by the names of inputs; none if only the backward pass is measured. `gradient`: of the
    output's gradient. `results`: of the output, or of the gradients of q, k and v; None if unknown.
    """

    inputs: dict[str, Tensor]
    gradient: Tensor
    results: tuple[Tensor, ...] | None


def draw(problem: Problem, device: torch.device, generator: torch.Generator) -> ColumnSigns | None:
    """None where there are too few columns. `generator` is one of the CPU."""
    p = problem

    def signs(*shape: int) -> Tensor:
        drawn = torch.randint(2, (p.batch, *shape), generator=generator)
        return (2 * drawn - 1).to(device, TORCH_DTYPE[p.dtype])

    def of_queries(of_keys: Tensor) -> Tensor:
        return of_keys.repeat_interleave(p.heads // p.kv_heads, 1)

    layer = p.scope != "core"
    if layer or p.passes == "backward":
        shape = (1, p.d_model) if layer else (p.heads, 1, p.d_v)
        gradient = signs(*shape)
        if gradient.numel() < FEWEST_COLUMNS:
            return None
        forward = layer and p.passes != "backward"
        names = ("query", "key", "value") if forward else ()
        inputs = {name: signs(*shape) for name in names}
        return ColumnSigns(inputs=inputs, gradient=gradient, results=None)
    key, value = signs(p.kv_heads, 1, p.d_k), signs(p.kv_heads, 1, p.d_v)
    query, output = of_queries(key), of_queries(value)
    return ColumnSigns(
        inputs={"query": query, "key": key, "value": value},
        gradient=output,
        results=(query, key, value) if p.backward else (output,),
    )
