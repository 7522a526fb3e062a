"""Peak bytes of `hf:sdpa` on the CPU in fp32: those of `sdpa`, as transformers then copies nothing.

Its last operation, `.transpose(1, 2).contiguous()`, is no copy: torch's flash kernel writes an
output that lies in memory as the queries do, and those lie token by token.
"""

from ..masks import is_causal, needs_matrix
from ..problem import Device, Problem
from . import sdpa


def peak_bytes(
    problem: Problem, device: Device, threads: int, *, variant: str, repo: str | None
) -> int | None:
    """Forward, in scope "core", where torch runs its flash kernel without a mask."""
    p = problem
    if device.type != "cpu":  # where torch has several kernels to choose from
        return None
    if variant not in ("", "sdpa") or p.scope != "core" or p.backward or p.empty_rows:
        return None
    if is_causal(p) and p.kv_seq_len != p.seq_len:  # it cuts keys off, or makes a mask
        return None
    if needs_matrix(p) or not sdpa.takes_flash(p):
        return None
    return sdpa.peak_bytes(p, device, threads, variant="flash")
