"""Peak bytes of backends that keep scores: naive of one head, fused and mla of all heads."""

from ..problem import Device, Problem
from ..shared.mask_counts import cheaper_form
from .sizes import Sizes, knows_scores


def naive(problem: Problem, device: Device, threads: int) -> int | None:
    """The scores and weights of one head, and the outputs before it. With gradients, the weights of
    every head are kept.
    """
    if not knows_scores(problem, device):
        return None
    if not problem.backward:
        return _naive_forward(problem)
    return _naive_training(problem) if problem.scope == "core" and not problem.empty_rows else None


def _naive_forward(p: Problem) -> int:
    z = Sizes(p)
    weights, output = z.weights // p.heads, z.o // p.heads
    last_head = z.o - output + max(2 * weights, weights + output)
    if p.scope == "core":
        return max(z.making_mask(), z.mask() + max(last_head, 2 * z.o), z.padded)
    projections = z.q // p.heads + (z.k + z.v) // p.kv_heads
    core = z.mask() + max(projections + last_head, 2 * z.o, z.padded, z.whole_o + z.y)
    return max(z.making_mask(), core)


def _naive_training(p: Problem) -> int:
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


def fused(problem: Problem, device: Device, threads: int) -> int | None:
    """The scores and weights of all heads: forward twice the scores; with gradients three times,
    weights and both gradients.

    With a softcap the gradients need a fourth, the result of tanh.
    """
    if not knows_scores(problem, device):
        return None
    return _fused_training(problem) if problem.backward else _fused_forward(problem)


def _fused_forward(p: Problem) -> int:
    z = Sizes(p)
    group = p.heads // p.kv_heads
    mask = z.mask(group)
    sinks = p.heads * z.rows * p.item_bytes if p.sinks and group > 1 and z.rows > 1 else 0
    # Joining the rows of a group copies them unless they are contiguous.
    joined = group > 1 and z.rows > 1 and (p.scope == "layer" or p.empty_rows > 0)
    q_copy = z.q if joined else z.copied(z.q, p.heads, z.rows)
    computing_scores = mask + sinks + q_copy + z.copied(z.k, p.kv_heads, p.kv_seq_len) + z.s
    weights_times_values = z.weights + z.copied(z.v, p.kv_heads, p.kv_seq_len) + z.o
    softmax = mask + sinks + 2 * z.weights
    core = max(z.making_mask(group), computing_scores, softmax, weights_times_values, z.padded)
    return core if p.scope == "core" else max(z.projected + core, z.after_core)


def _fused_training(p: Problem) -> int | None:
    z = Sizes(p)
    if p.empty_rows:
        return None
    group = p.heads // p.kv_heads
    mask_and_factors = z.mask(group) + z.factors
    making_mask = 0 if p.passes == "backward" else z.making_mask(group)
    computing_gradients = mask_and_factors + z.kept + 2 * z.weights  # of weights and scores
    if p.scope == "core":
        graph_kept = p.passes == "backward"  # so that the call can be repeated
        sinks = p.heads * z.rows * p.item_bytes if p.sinks else 0  # not yet summed over rows
        return max(
            making_mask,
            z.o + z.v + computing_gradients,
            z.o + z.v + z.s + z.k + z.q + sinks + (mask_and_factors + z.kept if graph_kept else 0),
        )
    if p.passes == "backward":
        return None
    w_o = (p.d_model * p.heads * p.d_v + p.d_model) * p.item_bytes
    others = z.projected + z.y + w_o
    tokens = p.batch * (p.seq_len + p.kv_seq_len)
    inputs_and_weights = 2 * tokens * p.d_model * p.item_bytes + 4 * w_o
    # If the scores do not dominate, the peak is elsewhere in the backward pass.
    scores_dominate = z.s > others + inputs_and_weights + 2 * z.o
    peak = max(others + computing_gradients, z.projected + making_mask)
    return peak if scores_dominate else None


def mla(problem: Problem, device: Device, threads: int, *, variant: str) -> int | None:
    """The scores and weights of all heads, beside what is made of the latent. None with gradients,
    for several lengths, and for absorbed queries that are not small beside
    the scores.
    """
    p = problem
    if p.backward or p.scope != "core" or p.empty_rows or not knows_scores(p, device):
        return None
    core = (_absorbed if cheaper_form(p, variant) == "absorbed" else _unabsorbed)(p)
    z = Sizes(p)
    return None if core is None else max(z.making_mask(), z.mask() + core)


def _unabsorbed(p: Problem) -> int:
    z = Sizes(p)
    token_bytes = p.batch * p.heads * p.kv_seq_len * p.item_bytes
    k, v, without_rope = (token_bytes * width for width in (p.d_k, p.d_v, p.d_k - p.rope))
    # Values lie by token: a batched product copies them unless batch and heads have one stride.
    v_copy = v if p.batch > 1 and p.heads > 1 and p.kv_seq_len > 1 else 0
    return max(without_rope + k, k + v + max(2 * z.s, z.s + v_copy + z.o))


def _absorbed(p: Problem) -> int | None:
    z = Sizes(p)
    row_bytes = p.batch * p.heads * p.seq_len * p.item_bytes
    latent, query = row_bytes * p.latent, row_bytes * (p.latent + p.rope)
    are_small = z.s > 2 * latent + z.q + z.o  # queries and outputs, copied or not
    return query + 2 * z.s if are_small else None
