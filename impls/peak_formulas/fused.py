"""Peak bytes of `fused`: the scores and weights of all heads."""

import torch

from ..problem import Problem
from .sizes import SCALE_BYTES, Sizes, allocates_results_only


def peak_bytes(problem: Problem, device: torch.device, threads: int) -> int | None:
    """Forward twice the scores; with gradients three times: weights and both gradients."""
    if problem.softcap or problem.sinks or problem.lengths:
        return None
    if problem.mask != "none" or not allocates_results_only(problem, device.type):
        return None
    return _training_peak(problem) if problem.backward else _forward_peak(problem)


def _forward_peak(p: Problem) -> int:
    z = Sizes(p)
    group = p.heads // p.kv_heads
    mask = z.mask * group
    # Joining the rows of a group copies them unless they are contiguous.
    joined = group > 1 and z.rows > 1 and (p.scope == "layer" or p.empty_rows > 0)
    q_copy = z.q if joined else z.copied(z.q, p.heads, z.rows)
    computing_scores = mask + q_copy + z.copied(z.k, p.kv_heads, p.kv_seq_len) + z.s
    weights_times_values = z.s + z.copied(z.v, p.kv_heads, p.kv_seq_len) + z.o
    softmax = mask + 2 * z.s
    core = max(z.making_mask(group), computing_scores, softmax, weights_times_values, z.padded)
    return core if p.scope == "core" else max(z.projected + core, z.after_core)


def _training_peak(p: Problem) -> int | None:
    z = Sizes(p)
    if p.empty_rows:
        return None
    mask_and_scale = z.mask * (p.heads // p.kv_heads) + SCALE_BYTES  # kept besides the weights
    if p.scope == "core":
        graph_kept = p.passes == "backward"  # so that the call can be repeated
        weights = mask_and_scale + z.s if graph_kept else 0
        return max(
            z.o + mask_and_scale + z.v + 3 * z.s,
            z.o + z.v + z.s + z.k + z.q + weights,
        )
    if p.passes == "backward":
        return None
    w_o = (p.d_model * p.heads * p.d_v + p.d_model) * p.item_bytes
    others = z.projected + z.y + w_o
    tokens = p.batch * (p.seq_len + p.kv_seq_len)
    inputs_and_weights = 2 * tokens * p.d_model * p.item_bytes + 4 * w_o
    # If the scores do not dominate, the peak is elsewhere in the backward pass.
    scores_dominate = z.s > others + inputs_and_weights + 2 * z.o
    return mask_and_scale + others + 3 * z.s if scores_dominate else None
