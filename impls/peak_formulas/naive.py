"""Peak bytes of `naive`: the scores and weights of one head, and the outputs before it."""

import torch

from ..problem import Problem
from .sizes import SCALE_BYTES, Sizes, allocates_results_only


def peak_bytes(problem: Problem, device: torch.device, threads: int) -> int | None:
    """With gradients, the weights of every head are kept."""
    if problem.softcap or problem.sinks or problem.lengths:
        return None
    if problem.mask != "none" or not allocates_results_only(problem, device.type):
        return None
    if not problem.backward:
        return _forward_peak(problem)
    return _training_peak(problem) if problem.scope == "core" and not problem.empty_rows else None


def _forward_peak(p: Problem) -> int:
    z = Sizes(p)
    scores, output = z.s // p.heads, z.o // p.heads
    last_head = z.o - output + max(2 * scores, scores + output)
    if p.scope == "core":
        return max(z.making_mask(), z.mask + max(last_head, 2 * z.o), z.padded)
    projections = z.q // p.heads + (z.k + z.v) // p.kv_heads
    core = z.mask + max(projections + last_head, 2 * z.o, z.padded, z.whole_o + z.y)
    return max(z.making_mask(), core)


def _training_peak(p: Problem) -> int:
    """Backward runs from the last head to the first.

    Each head leaves its gradients, and frees its weights unless the graph is kept.
    """
    z = Sizes(p)
    group, scores = p.heads // p.kv_heads, z.s // p.heads
    q, k, v = z.q // p.heads, z.k // p.kv_heads, z.v // p.kv_heads
    graph_kept = p.passes == "backward"  # so that the call can be repeated
    kept = z.s + p.heads * SCALE_BYTES + z.mask if graph_kept else 0
    joining_outputs = 0 if graph_kept else z.mask + z.s + 2 * z.o
    joining_gradients = z.o + z.q + z.k + z.v + max(z.q, z.k, z.v)
    peak = max(joining_outputs, joining_gradients + kept)
    for done in range(p.heads):
        left = p.heads if graph_kept else p.heads - done
        weights, gradients = left * (scores + SCALE_BYTES), done * q + -(-done // group) * (k + v)
        before = weights + z.o + z.mask + gradients
        # Gradients of shared k and v are summed: the first time into a new tensor, then in place.
        shared = done % group
        weights_gradient = v + scores + (v if shared == 1 else 0)
        scores_gradient = 2 * scores + (0 if shared else v)
        inputs_gradient = q + k + (v if shared == 0 else max(0, k - scores) if shared == 1 else 0)
        if graph_kept:  # the scores' gradient is beside the weights, not in their place
            inputs_gradient += scores
        peak = max(peak, before + max(weights_gradient, scores_gradient, inputs_gradient))
    return peak
