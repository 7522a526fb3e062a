"""Peak bytes of `fused`: the scores and weights of all heads."""

from ..problem import Device, Problem
from .sizes import Sizes, knows_scores


def peak_bytes(problem: Problem, device: Device, threads: int) -> int | None:
    """Forward twice the scores; with gradients three times: weights and both gradients.

    With a softcap the gradients need a fourth, the result of tanh.
    """
    if not knows_scores(problem, device):
        return None
    return _training_peak(problem) if problem.backward else _forward_peak(problem)


def _forward_peak(p: Problem) -> int:
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


def _training_peak(p: Problem) -> int | None:
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
