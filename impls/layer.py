"""The layer around a backend's core, and the block around the layer: weights, and the call in each
scope.
"""

from collections.abc import Callable, Mapping
from math import sqrt

import torch
from torch import Tensor
from torch.nn.functional import gelu, layer_norm, linear, pad

from .backend import TORCH_DTYPE, Attend, BlockWeights, Call, Inputs, Weights
from .masks import has_no_rule
from .problem import Problem
from .shared.inputs import draw
from .shared.mask_tensors import computed_rows, fully_masked_rows

BIAS_SD = 0.5

Rows = Callable[[Tensor], Tensor]
"""From the rows of computed queries, [..., rows, width], to those of all, [..., seq_len, width]."""


def make_weights(problem: Problem, device: torch.device, seed: int) -> Weights:
    """Xavier-uniform per projection (Glorot and Bengio 2010); biases normal of BIAS_SD.

    Trained layers have biases, and with zeros a layer that forgets them would pass every check. So
    with the gains of norms, which are around 1. BlockWeights in scope "block". Equal for equal
    seeds on every device.
    """
    p = problem
    widths = {"q": p.heads * p.d_k, "k": p.kv_heads * p.d_k, "v": p.kv_heads * p.d_v}
    shapes: dict[str, tuple[int, ...]] = {}
    for name, width in widths.items():
        shapes |= {f"w_{name}": (width, p.d_model), f"b_{name}": (width,)}
    shapes |= {"w_o": (p.d_model, p.heads * p.d_v), "b_o": (p.d_model,)}
    if p.scope == "block":
        shapes |= dict.fromkeys(("gain_1", "shift_1", "gain_2", "shift_2"), (p.d_model,))
        shapes |= {"w_up": (p.d_ff, p.d_model), "b_up": (p.d_ff,)}
        shapes |= {"w_down": (p.d_model, p.d_ff), "b_down": (p.d_model,)}

    def made(name: str, *shape: int) -> Tensor:
        tensor = torch.empty(shape, dtype=TORCH_DTYPE[p.dtype], device=device)
        if device.type != "meta" and len(shape) == 2:
            draw(tensor, name, seed, shape="uniform", scale=sqrt(6 / sum(shape)))
        elif device.type != "meta":
            draw(tensor, name, seed, around=float(name.startswith("gain")), scale=BIAS_SD)
        return tensor.requires_grad_(p.backward)

    weights = {name: made(name, *shape) for name, shape in shapes.items()}
    return BlockWeights(**weights) if p.scope == "block" else Weights(**weights)


def as_call(
    problem: Problem,
    inputs: Inputs,
    weights: Weights | None,
    attend: Attend,
    *,
    fills: bool = False,
    facts: Mapping[str, object] | None = None,
) -> Call:
    """`attend` as the call to time, in any scope: it gets the problem as asked, and what it returns
    is judged. Queries that see no key must give zeros.

    With `fills` attnbench gives them, which the row's `configuration` says: `attend` never gets the
    leading queries without keys, and its output for others without keys
    (mask_tensors.materialized_mask) is overwritten. `facts`: what else `configuration` says.
    """
    core = attend
    if fills and (problem.empty_rows or has_no_rule(problem)):
        fill = with_empty_rows(problem, inputs.query.device)
        # A softmax over no key is 0/0, also backward.
        core = lambda q, k, v: fill(attend(computed_queries(problem, q), k, v))  # noqa: E731
    if weights is None:
        q, k, v = inputs
        call: Call = lambda: core(q, k, v)  # noqa: E731 - gets an attribute
    else:
        w = weights

        def layer(inputs: Inputs) -> Tensor:
            return linear(merge_heads(core(*split_heads(problem, inputs, w))), w.w_o, w.b_o)

        call = in_scope(inputs, w, layer)
    note = {"note": "rows without keys are filled by attnbench"} if core is not attend else {}
    if note or facts:
        call.facts = {**note, **(facts or {})}  # type: ignore[attr-defined]
    return call


def in_scope(inputs: Inputs, weights: Weights, layer: Callable[[Inputs], Tensor]) -> Call:
    """A whole attention layer as the call to time: by itself, or inside its block."""
    if not isinstance(weights, BlockWeights):
        return lambda: layer(inputs)
    w, x = weights, inputs.query
    return lambda: block(x, w, lambda n: layer(Inputs(n, n, n, inputs.more)))


def block(x: Tensor, weights: BlockWeights, attend: Callable[[Tensor], Tensor]) -> Tensor:
    """The pre-norm block of block.py, [batch, n, d_model], around any layer `attend`."""
    w, shape = weights, x.shape[-1:]
    y = x + attend(layer_norm(x, shape, w.gain_1, w.shift_1))
    return y + linear(
        gelu(linear(layer_norm(y, shape, w.gain_2, w.shift_2), w.w_up, w.b_up)), w.w_down, w.b_down
    )


def split_heads(
    problem: Problem, inputs: Inputs, weights: Weights
) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v from one projection each: [batch, n, heads * width] viewed as [batch, heads, n,
    width].
    """
    p, w = problem, weights

    def split(x: Tensor, weight: Tensor, bias: Tensor, heads: int) -> Tensor:
        return linear(x, weight, bias).unflatten(-1, (heads, -1)).transpose(1, 2)  # type: ignore[no-any-return]

    return (
        split(inputs.query, w.w_q, w.b_q, p.heads),
        split(inputs.key, w.w_k, w.b_k, p.kv_heads),
        split(inputs.value, w.w_v, w.b_v, p.kv_heads),
    )


def merge_heads(o: Tensor) -> Tensor:
    """[batch, heads, n_q, d_v] to [batch, n_q, heads * d_v]; a view if memory has that order."""
    return o.transpose(1, 2).flatten(2)


def computed_queries(problem: Problem, x: Tensor) -> Tensor:
    """[..., seq_len, width] without the leading queries that see no key."""
    return x[..., problem.empty_rows :, :] if problem.empty_rows else x


def with_empty_rows(problem: Problem, device: torch.device) -> Rows:
    """Queries that see no key get zeros, and no gradient flows through them."""
    masked, empty = fully_masked_rows(problem, computed_rows(problem, device)), problem.empty_rows

    def fill(rows: Tensor) -> Tensor:
        rows = rows if masked is None else rows.masked_fill(masked[:, None], 0.0)
        return pad(rows, (0, 0, empty, 0)) if empty else rows

    return fill
