"""New values of q, k and v whose result is known without computing it: signs of whole columns.

A column of q and the same column of k with other signs leave every score as it is. A column of v
with another sign changes the sign of that column of the output, and nothing else. So a problem in
scope "core" has 2 to the power of its columns inputs, unlike each other in half of their numbers,
whose outputs and gradients follow exactly, to the bit, from one that was checked. Signs are drawn
for each batch entry, key/value head and column.

It holds for exact attention only: what approximates it may mix columns.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ...impls.backend import TORCH_DTYPE
from ...impls.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSigns:
    """Factors 1 and -1, [batch, heads, 1, columns].

    `inputs`: by the names of inputs. `gradient`: of the output's gradient. `results`: of the
    output, or of the gradients of q, k and v.
    """

    inputs: dict[str, Tensor]
    gradient: Tensor
    results: tuple[Tensor, ...]


def draw(problem: Problem, device: torch.device, generator: torch.Generator) -> ColumnSigns:
    """Of a problem whose forward pass is measured, since a graph holds its inputs; `generator` is
    one of the CPU.
    """
    p = problem

    def signs(columns: int) -> Tensor:
        drawn = torch.randint(2, (p.batch, p.kv_heads, 1, columns), generator=generator)
        return (2 * drawn - 1).to(device, TORCH_DTYPE[p.dtype])

    def of_queries(of_keys: Tensor) -> Tensor:
        return of_keys.repeat_interleave(p.heads // p.kv_heads, 1)

    key, value = signs(p.d_k), signs(p.d_v)
    query, output = of_queries(key), of_queries(value)
    return ColumnSigns(
        inputs={"query": query, "key": key, "value": value},
        gradient=output,
        results=(query, key, value) if p.backward else (output,),
    )
