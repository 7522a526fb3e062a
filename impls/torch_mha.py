"""torch.nn.MultiheadAttention with our weights: the layer as torch ships it, asked for its output
alone (need_weights=False).

Without gradients, and with an even number of heads, it takes its fast path, a kernel of its own for
the whole layer; the row's `kernel` is then native_mha. A mask is an argument that its users make
once, so it is made in `prepare`, and neither timed nor weighed.
"""

import torch
from torch import Tensor

from .backend import Call, Inputs, Weights
from .problem import Problem


def why_not(problem: Problem, device: torch.device) -> str | None:
    p = problem
    if p.scope == "core":
        return "nn.MultiheadAttention is a whole layer; use scope: layer"
    if p.kv_heads != p.heads:
        return "nn.MultiheadAttention has no grouped heads"
    if p.d_k * p.heads != p.d_model or p.d_v != p.d_k:
        return (
            f"nn.MultiheadAttention has heads of d_model / heads = {p.d_model / p.heads:g} columns;"
            f" here they have {p.d_k} and {p.d_v}"
        )
    return None


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    assert weights is not None
    layer = layer_of(problem, weights)
    mask = hidden(problem, inputs.query.device)
    # A hint that the mask is the triangle from the top left: torch may then use a kernel that has
    # it built in.
    from_corner = problem.causal and problem.causal_offset == 0

    def call() -> Tensor:
        output: Tensor = layer(*inputs, attn_mask=mask, is_causal=from_corner, need_weights=False)[
            0
        ]
        return output

    return call


def hidden(problem: Problem, device: torch.device) -> Tensor | None:
    """True where a query must not see a key, [seq_len, kv_seq_len], queries that see none among
    them: torch gives zeros for these.
    """
    if not problem.causal:
        return None
    last_seen = torch.arange(problem.seq_len, device=device) + problem.causal_offset
    return torch.arange(problem.kv_seq_len, device=device) > last_seen[:, None]


def layer_of(problem: Problem, weights: Weights) -> torch.nn.MultiheadAttention:
    """The module, its own parameters replaced by ours. Those of q, k and v are joined as it wants
    them; gradients still find ours.
    """
    p, w = problem, weights
    layer = torch.nn.MultiheadAttention(p.d_model, p.heads, batch_first=True, device="meta").train(
        p.backward
    )
    with torch.set_grad_enabled(p.backward):
        joined = {
            "in_proj_weight": torch.cat((w.w_q, w.w_k, w.w_v)),
            "in_proj_bias": torch.cat((w.b_q, w.b_k, w.b_v)),
        }
    for module, tensors in ((layer, joined), (layer.out_proj, {"weight": w.w_o, "bias": w.b_o})):
        for name, tensor in tensors.items():
            delattr(
                module, name
            )  # a parameter cannot be a tensor that was made from others; an attribute can
            setattr(module, name, tensor)
    return layer
