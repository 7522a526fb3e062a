"""What a problem costs by counting: the work that any backend must do, before anything runs."""

from typing import Any

from ..impls.problem import Problem


def known(problem: Problem) -> dict[str, Any]:
    """The fields of a row that need neither a backend nor a run."""
    reason = "the case ended before it was looked at"
    return {"input_bytes": input_bytes(problem), "work_flops": work_flops(problem), "predicted_reason": reason}


def work_flops(problem: Problem) -> int:
    """Floating-point operations of the matrix products, 2 per multiply-add, over the pairs that the mask keeps.

    Forward: Q K^T and P V. Backward: dV, dP, dQ and dK, twice the forward; kernels that compute the scores again in the
    backward pass do a fifth product, which is their choice and not counted. Scope "layer" adds the four projections, each with
    its two backward products. The forward count is the usual 4 B h N^2 d_k (Dao et al. 2022, FlashAttention, section 3).
    """
    p = problem
    pairs = p.batch * p.heads * p.kept_pairs
    forward = 2 * pairs * (p.d_k + p.d_v)
    if p.scope == "layer":
        queries, keys = p.batch * p.seq_len, p.batch * p.kv_seq_len
        forward += 2 * queries * p.d_model * p.heads * (p.d_k + p.d_v)  # W_q and W_O
        forward += 2 * keys * p.d_model * p.kv_heads * (p.d_k + p.d_v)  # W_k and W_v
    return {"forward": forward, "backward": 2 * forward, "forward+backward": 3 * forward}[p.passes]


def input_bytes(problem: Problem) -> int:
    """Bytes of inputs and weights, and of the output's gradient where gradients are asked for."""
    p = problem
    if p.scope == "layer":
        tokens = p.seq_len if p.kv_seq_len == p.seq_len else p.seq_len + p.kv_seq_len  # self-attention has one source
        elements = p.batch * tokens * p.d_model
        q_width, k_width, v_width = p.heads * p.d_k, p.kv_heads * p.d_k, p.kv_heads * p.d_v
        elements += (q_width + k_width + v_width) * (p.d_model + 1) + (p.heads * p.d_v + 1) * p.d_model
        output = p.batch * p.seq_len * p.d_model
    else:
        elements = p.batch * (p.heads * p.seq_len * p.d_k + p.kv_heads * p.kv_seq_len * (p.d_k + p.d_v))
        output = p.batch * p.heads * p.seq_len * p.d_v
    return (elements + (output if p.backward else 0)) * p.item_bytes
