"""The inputs of a problem: their shapes, their order in memory, and random numbers in them."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ..backend import TORCH_DTYPE, Inputs, leaves
from ..problem import Problem
from .drawing import draw_inputs, draw_once
from .kv_tensors import empty_storage


def make_inputs(problem: Problem, device: torch.device, seed: int, order: str = "heads") -> Inputs:
    """Normal random inputs that require grad if the problem does.

    Equal for equal seeds, on every device and in either order. On device "meta" they have no
    numbers.
    `order`: how tensors of scope "core" lie in memory. "heads": head by head. "model": as a model
    of Hugging Face has them: queries token by token, as projections write them; so are keys and
    values, unless a cache has joined them head by head (`keys_are_cached`).
    """
    made = _empty_inputs(problem, device, order)
    if device.type != "meta":
        draw_once(made, seed)
        draw_inputs(problem, made, seed)
    return _requiring_grad(problem, made)


def made_entries(problem: Problem, entries: Sequence[int], seed: int, once_seed: int) -> Inputs:
    """On the CPU, these entries of the batch of the inputs that `make_inputs` made from `once_seed`
    and `draw_inputs` then drew from `seed`, as the inputs of a smaller batch.
    """
    made = _empty_inputs(replace(problem, batch=len(entries)), torch.device("cpu"), "heads")
    tables = {}
    if problem.page:
        of_entries = made.more["page_table"]
        tables["page_table"] = of_entries.new_empty(problem.batch, of_entries.shape[1])
    whole = replace(made, more={**made.more, **tables})
    draw_once(whole, once_seed)
    for name, table in tables.items():
        made.more[name].copy_(table[list(entries)])
    draw_inputs(problem, made, seed, entries)
    for name in tables:  # of the pages that are here
        made.more[name].copy_(torch.arange(made.more[name].numel()).view_as(made.more[name]))
    return _requiring_grad(problem, made)


def _requiring_grad(problem: Problem, inputs: Inputs) -> Inputs:
    for tensor in leaves(inputs, None):
        tensor.requires_grad_(problem.backward)
    return inputs


def _empty_inputs(p: Problem, device: torch.device, order: str) -> Inputs:
    """Inputs without numbers."""
    dtype = TORCH_DTYPE[p.dtype]

    def by_head(heads: int, tokens: int, width: int) -> Tensor:
        return torch.empty(p.batch, heads, tokens, width, dtype=dtype, device=device)

    def by_token(heads: int, tokens: int, width: int) -> Tensor:
        return by_head(tokens, heads, width).transpose(1, 2)

    if p.scope != "core":
        x = torch.empty(p.batch, p.seq_len, p.d_model, dtype=dtype, device=device)
        cross = p.kv_seq_len != p.seq_len
        source = x.new_empty(p.batch, p.kv_seq_len, p.d_model) if cross else x
        made = Inputs(x, source, source)
    else:
        query = by_token if order == "model" else by_head
        keys = by_head if order == "heads" or keys_are_cached(p) else by_token
        k, v, more = empty_storage(p, dtype, device) or (
            keys(p.kv_heads, p.kv_seq_len, p.d_k),
            keys(p.kv_heads, p.kv_seq_len, p.d_v),
            {},
        )
        made = Inputs(query(p.heads, p.seq_len, p.d_k), k, v, more)
    of_axes = {name: made.query.new_empty(shape) for name, shape in p.tensors.items()}
    return replace(made, more={**made.more, **of_axes})


def keys_are_cached(problem: Problem) -> bool:
    """Whether a model of Hugging Face reads these keys from its cache: a decoder without gradients.

    Its encoder's attention, which is neither causal nor to another length, has no cache, and
    training uses none.
    """
    is_decoder = problem.causal or problem.kv_seq_len != problem.seq_len
    return is_decoder and not problem.backward
