"""Attention as most people write it in PyTorch: one projection for all heads, view and transpose, batched matmul, plain softmax."""

from torch import Tensor
from torch.nn.functional import pad

from .backend import Call, Inputs, Weights
from .layer import as_call, split_heads
from .problem import Problem
from .textbook import hidden_pairs, softmax_weights


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    return as_call(problem, inputs, weights, lambda q, k, v: core(q, k, v, problem))


def core(q: Tensor, k: Tensor, v: Tensor, problem: Problem) -> Tensor:
    """All heads at once; the scores of all of them are alive together."""
    o = grouped_weights(q, k, problem) @ v
    return o.view(*q.shape[:3], problem.d_v)


def grouped_weights(q: Tensor, k: Tensor, problem: Problem) -> Tensor:
    """[batch, kv_heads, group * n_q, n_kv]: heads that share keys are further rows against the same keys, so that no key is copied."""
    group = problem.heads // problem.kv_heads
    hidden = hidden_pairs(problem, q.device, copies=group)
    if group == 1:
        return softmax_weights(q, k, hidden, problem.scale)
    return softmax_weights(q.reshape(problem.batch, problem.kv_heads, -1, problem.d_k), k, hidden, problem.scale)


def attention_weights(problem: Problem, inputs: Inputs, weights: Weights | None) -> Tensor:
    q, k, _ = inputs if weights is None else split_heads(problem, inputs, weights)
    p = grouped_weights(q[:, :, problem.empty_rows :], k, problem)
    return pad(p.view(problem.batch, problem.heads, -1, problem.kv_seq_len), (0, 0, problem.empty_rows, 0))
