"""Peak bytes of `naive`: the scores and weights of one head, and the outputs before it."""

from ..problem import Device, Problem
from .sizes import Sizes, knows_scores


def peak_bytes(problem: Problem, device: Device, threads: int) -> int | None:
    """With gradients, the weights of every head are kept."""
    if not knows_scores(problem, device):
        return None
    if not problem.backward:
        return _forward_peak(problem)
    return _training_peak(problem) if problem.scope == "core" and not problem.empty_rows else None


def _forward_peak(p: Problem) -> int:
    z = Sizes(p)
    weights, output = z.weights // p.heads, z.o // p.heads
    last_head = z.o - output + max(2 * weights, weights + output)
    if p.scope == "core":
        return max(z.making_mask(), z.mask() + max(last_head, 2 * z.o), z.padded)
    projections = z.q // p.heads + (z.k + z.v) // p.kv_heads
    core = z.mask() + max(projections + last_head, 2 * z.o, z.padded, z.whole_o + z.y)
    return max(z.making_mask(), core)


def _training_peak(p: Problem) -> int:
    """Backward runs from the last head to the first.

    Each head leaves its gradients, and frees its weights unless the graph is kept.
    """
    z = Sizes(p)
    group, scores, weights = p.heads // p.kv_heads, z.s // p.heads, z.weights // p.heads
    q, k, v = z.q // p.heads, z.k // p.kv_heads, z.v // p.kv_heads
    sink = p.item_bytes if p.sinks else 0
    kept = z.kept // p.heads + z.factors  # of one head
    graph, graph_kept = p.heads * kept + z.mask(), p.passes == "backward"  # to repeat the call
    making_outputs = 0 if graph_kept else max(z.making_mask(), graph + 2 * z.o)
    joining_gradients = z.o + z.q + z.k + z.v + p.heads * sink + max(z.q, z.k, z.v)
    peak = max(making_outputs, joining_gradients + (graph if graph_kept else 0))
    for done in range(p.heads):
        left = p.heads if graph_kept else p.heads - done
        gradients = done * (q + sink) + -(-done // group) * (k + v)
        before = left * kept + z.o + z.mask() + gradients
        # Gradients of shared k and v are summed: the first time into a new tensor, then in place.
        shared = done % group
        weights_gradient = v + scores + (v if shared == 1 else 0)
        scores_gradient = 2 * weights + (0 if shared else v)
        inputs_gradient = q + k + (v if shared == 0 else max(0, k - scores) if shared == 1 else 0)
        # The scores' gradient is in the place of what was kept, or beside it.
        inputs_gradient += scores - (0 if graph_kept else z.kept // p.heads)
        peak = max(peak, before + max(weights_gradient, scores_gradient, inputs_gradient))
    return peak
