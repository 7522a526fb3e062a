"""Peak bytes of `triton`: nothing grows with the square of N."""

from ..problem import Device, Problem
from .sizes import Sizes

LSE_BYTES = 4  # log-sum-exp and delta are fp32 in every dtype


def peak_bytes(problem: Problem, device: Device, threads: int, *, variant: str) -> int | None:
    """Forward: output and log-sum-exp. With gradients: delta and the gradients as well; of sinks a
    term for each query, and their sums, which are rounded to the gradient's dtype.
    """
    if device.type != "cuda":
        return None
    p, z = problem, Sizes(problem)
    lse = LSE_BYTES * p.batch * p.heads * z.rows
    if p.backward:
        known = p.scope == "core" and not p.empty_rows
        rounded = p.item_bytes if p.item_bytes < LSE_BYTES else 0
        sinks = lse + p.heads * (LSE_BYTES + rounded) if p.sinks else 0
        return z.o + 2 * lse + z.q + z.k + z.v + sinks if known else None
    core = max(z.o + lse, z.padded)
    if p.scope == "core":
        return core
    # The kernel writes merged heads, which padding undoes.
    return max(z.projected + core, z.after_core if z.padded else z.o + z.y)
