"""A ragged batch padded to its longest sequence, under a mask, by sdpa, as most models do it.

Padding, mask and taking the padding out are in the call. In a model that pads before the first
layer the copies are made once, not in each layer; but there projections compute padding too.
`padded:maskless` leaves the mask out: causal queries never see padding that comes after them.
"""

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as sdpa

from .axes.lengths import sequences
from .backend import Call, Inputs, Weights
from .layer import as_call
from .problem import Problem
from .shared.mask_tensors import by_distance

COMPUTES = ("local", "strided", "lengths")
VARIANTS = ("maskless",)


def why_not(problem: Problem, device: torch.device, *, variant: str) -> str | None:
    if not problem.lengths:
        return "needs lengths: a batch of equal lengths has nothing to pad"
    plain = problem.causal and problem.kv_seq_len == problem.seq_len and problem.mask == "none"
    if variant and not plain:
        return "padded:maskless takes causal self-attention only: else queries see the padding"
    return None


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None, *, variant: str) -> Call:
    p, device, grouped = problem, inputs.query.device, problem.kv_heads != problem.heads
    queries, keys = torch.tensor(sequences(p.lengths), device=device).unbind(1)
    of_queries, of_keys = places(queries), places(keys)

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = padded(q, *of_queries), padded(k, *of_keys), padded(v, *of_keys)
        mask = None if variant else padding_mask(p, queries, keys, q.shape[2], k.shape[2])
        o = sdpa(
            q, k, v, attn_mask=mask, is_causal=bool(variant), scale=p.scale, enable_gqa=grouped
        )
        entries, positions = of_queries
        return o[entries, :, positions].transpose(0, 1)[None]  # [1, heads, all queries, d_v]

    return as_call(problem, inputs, weights, attend, fills=True)


def build_mask(problem: Problem, device: torch.device, *, variant: str) -> Tensor | None:
    queries, keys = torch.tensor(sequences(problem.lengths), device=device).unbind(1)
    longest = int(queries.max()), int(keys.max())
    return None if variant else padding_mask(problem, queries, keys, *longest)


def places(lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Of each token: its sequence, and its position there."""
    sequence = torch.arange(len(lengths), device=lengths.device).repeat_interleave(lengths)
    starts = lengths.cumsum(0) - lengths
    return sequence, torch.arange(len(sequence), device=lengths.device) - starts[sequence]


def padded(x: Tensor, sequence: Tensor, position: Tensor) -> Tensor:
    """[1, heads, tokens, width] as [sequences, heads, longest, width] with zeros as padding."""
    sizes = int(sequence[-1]) + 1, int(position.max()) + 1
    zeros = x.new_zeros(*sizes, x.shape[1], x.shape[3])
    return zeros.index_put_((sequence, position), x[0].transpose(0, 1)).transpose(1, 2)


def padding_mask(p: Problem, queries: Tensor, keys: Tensor, n_q: int, n_kv: int) -> Tensor:
    """[sequences, 1, n_q, n_kv], True where a query attends; padding sees what the last query of
    its sequence sees, so that no softmax runs over nothing.
    """
    key = torch.arange(n_kv, device=keys.device)
    end = keys[:, None, None]
    own = torch.arange(n_q, device=keys.device)[:, None] + (keys - queries)[:, None, None]
    own = own.clamp(max=end - 1)
    seen = key <= own if p.causal else key < end
    if p.mask != "none":
        seen = seen & by_distance(p, key - own)
    return seen[:, None].expand(-1, -1, n_q, -1)
