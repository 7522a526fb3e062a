"""What a problem costs by formula: the work that every backend must do."""

from math import prod
from typing import Any

from ...impls.axes.kv_storage import read_bytes, stored_bytes
from ...impls.axes.lengths import padding_ratio
from ...impls.problem import Problem
from ...impls.shared.mask_counts import (
    attention_flops,
    unmasked_keys,
    unmasked_pairs,
    unmasked_queries,
)


def known_costs(problem: Problem) -> dict[str, Any]:
    """The fields of a row that need no run."""
    return {
        "input_bytes": input_bytes(problem),
        "work_flops": work_flops(problem),
        "work_exps": work_exps(problem),
        "minimal_bytes": minimal_bytes(problem),
        "padding_ratio": padding_ratio(problem.lengths) if problem.lengths else None,
        "predicted_reason": "the case ended before its prediction",
    }


def work_flops(problem: Problem) -> int:
    """Floating-point operations of the matrix products, over the pairs that the mask keeps.

    2 per multiply-add. Forward: Q K^T and P V, the usual 4 B h N^2 d_k (Dao et al. 2022,
    FlashAttention, section 3). Backward: dV, dP, dQ and dK, twice the forward; kernels that
    recompute the scores in the backward pass do a fifth product, which is not counted. With a
    latent cache it is the work of the cheaper form at these lengths, projections included. Scope
    "layer" adds the four projections, each with its two backward products, scope "block" also the
    two products of the feed-forward layer.
    """
    p = problem
    forward = attention_flops(p)
    if p.scope != "core":
        queries, keys = p.batch * p.seq_len, p.batch * p.kv_seq_len
        forward += 2 * queries * p.d_model * p.heads * (p.d_k + p.d_v)  # W_q and W_O
        forward += 2 * keys * p.d_model * p.kv_heads * (p.d_k + p.d_v)  # W_k and W_v
    forward += feed_forward_flops(p)
    return {"forward": forward, "backward": 2 * forward, "forward+backward": 3 * forward}[p.passes]


def feed_forward_flops(problem: Problem) -> int:
    """Of a block's feed-forward layer, forward: 16 B N d^2 with d_ff = 4 d; 0 in other scopes."""
    p = problem
    return 4 * p.batch * p.seq_len * p.d_model * p.d_ff if p.scope == "block" else 0


def work_exps(problem: Problem) -> int:
    """Exponentials of the softmax: one for each pair that the mask keeps, and what axes add, as one
    for the sink of each head and query that sees a key, and with a softcap one tanh for each pair;
    none for "backward".

    The backward pass can keep the weights; kernels that recompute them need as many again, which is
    not counted. Counted apart from the matrix products because other units compute them: an H100
    does 3.9e12 of them a second, but 989e12 operations of matrix products (Shah et al. 2024,
    FlashAttention-3, section 3.1); the same units compute tanh.
    """
    p = problem
    if p.passes == "backward":
        return 0
    axes = p.opted_in.values()
    of_pair, of_query = 1 + sum(one.pair_exps for one in axes), sum(one.query_exps for one in axes)
    return p.heads * (of_pair * unmasked_pairs(p) + of_query * unmasked_queries(p))


def minimal_bytes(problem: Problem) -> int:
    """Bytes that must move to and from memory once: inputs that matter are read, results written.

    The compulsory traffic of the roofline model (Williams et al. 2009); `work_flops` over it is the
    highest arithmetic intensity that any kernel can have. No exact algorithm reaches it for every
    size of fast memory (Dao et al. 2022, proposition 3). Keys that no query sees and queries that
    see no key are not read; their gradients and outputs, all zero, are written. The backward pass
    reads the inputs and the output's gradient, but not O: rowsum(dO * O) equals rowsum(dP * P).
    """
    p = problem
    elements = 0 if p.scope == "core" else _layer_elements(p)
    elements += _elements_of_axes(p) * (2 if p.backward else 1)
    return elements * p.item_bytes + (_core_bytes(p) if p.scope == "core" else 0)


def _elements_of_axes(p: Problem) -> int:
    return sum(map(prod, p.tensors.values()))


def _core_bytes(p: Problem) -> int:
    reading, queries = unmasked_queries(p), p.batch * p.seq_len  # over the whole batch
    q, o = p.heads * p.d_k, p.heads * p.d_v  # elements per token
    elements = reading * q
    if p.passes != "backward":
        elements += queries * o
    if p.backward:
        elements += reading * o + queries * q
    gradients = stored_bytes(p) if p.backward else 0
    return elements * p.item_bytes + read_bytes(p, unmasked_keys(p)) + gradients


def _layer_elements(p: Problem) -> int:
    """`backward` alone does not read the last bias; its gradient needs every row of dO."""
    one_source = p.kv_seq_len == p.seq_len
    sources = p.seq_len if one_source else p.seq_len + p.kv_seq_len
    read = p.batch * p.seq_len if one_source else unmasked_queries(p) + unmasked_keys(p)
    weights, output = _weight_elements(p), p.batch * p.seq_len * p.d_model
    total = read * p.d_model + weights
    if p.passes != "backward":
        total += output
    else:
        total -= p.d_model
    if p.backward:
        total += output + p.batch * sources * p.d_model + weights
    return total


def _weight_elements(p: Problem) -> int:
    q_width, k_width, v_width = p.heads * p.d_k, p.kv_heads * p.d_k, p.kv_heads * p.d_v
    layer = (q_width + k_width + v_width) * (p.d_model + 1) + (p.heads * p.d_v + 1) * p.d_model
    if p.scope != "block":
        return layer
    norms, biases = 4 * p.d_model, p.d_ff + p.d_model
    return layer + norms + 2 * p.d_ff * p.d_model + biases


def input_bytes(problem: Problem) -> int:
    """Bytes of inputs and weights, of the output's gradient if needed, and of a mask's matrix."""
    p = problem
    if p.scope != "core":
        one_source = p.kv_seq_len == p.seq_len  # self-attention
        tokens = p.seq_len if one_source else p.seq_len + p.kv_seq_len
        elements = p.batch * tokens * p.d_model + _weight_elements(p)
        output = p.batch * p.seq_len * p.d_model
    else:
        elements = p.batch * p.heads * p.seq_len * p.d_k
        output = p.batch * p.heads * p.seq_len * p.d_v
    elements += _elements_of_axes(p) + (output if p.backward else 0)
    stored = stored_bytes(p) if p.scope == "core" else 0
    return elements * p.item_bytes + stored + mask_bytes(p)


def mask_bytes(problem: Problem) -> int:
    """Bytes of a mask's matrix that a caller passes: only a mask without a rule has one."""
    p = problem
    return (p.seq_len - p.empty_rows) * p.kv_seq_len if p.mask == "random" else 0
