"""Peak bytes of `cascade` on the CPU in fp32, forward."""

from dataclasses import replace
from typing import Any

from ..axes.kv_storage import AS_USUAL
from ..problem import Device, Problem
from . import sdpa
from .sizes import Sizes


def peak_bytes(problem: Problem, device: Device, threads: int) -> int | None:
    """While the prefix is read, while the own keys are, or while both results are joined; None with
    gradients.
    """
    p, z = problem, Sizes(problem)
    if p.backward:
        return None
    of_prefix, of_own = (
        sdpa.peak_bytes(one, device, threads, variant="flash") for one in parts(problem)
    )
    if of_prefix is None or of_own is None:
        return None
    group, own = p.heads // p.kv_heads, p.kv_seq_len - p.prefix
    folded = z.q if min(p.batch, p.kv_heads, group * p.seq_len) > 1 else 0
    mask = p.seq_len * own * p.item_bytes if _has_triangle(p) and p.seq_len < own else 0
    return max(folded + of_prefix, z.o + z.column + mask + of_own, 3 * z.o + 4 * z.column)


def parts(problem: Problem) -> tuple[Problem, Problem]:
    """What torch's kernel is given, without a triangle: all queries with the prefix, and each
    sequence's with its own keys.
    """
    p, group = problem, problem.heads // problem.kv_heads
    usual = replace(p, causal=False, causal_align="", **AS_USUAL)
    rows: dict[str, Any] = {"heads": p.kv_heads, "seq_len": group * p.seq_len}
    own = replace(usual, kv_seq_len=p.kv_seq_len - p.prefix, **({} if _has_triangle(p) else rows))
    of_all = {**rows, "batch": 1, "seq_len": p.batch * group * p.seq_len}
    return replace(usual, kv_seq_len=p.prefix, **of_all), own


def _has_triangle(problem: Problem) -> bool:
    """As in cascade.py, which imports torch."""
    return problem.causal and problem.seq_len > 1
