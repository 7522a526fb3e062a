"""How long calls and cases take, before anything runs: from a machine's pace and the plan.

A call takes its FLOPs, and the exponentials of its scores, at the rate of matrix products, and
scores that are written at the rate of memory. How often a case is called, and what comes with it,
follows from the plan. docs/method.md says how far off this was.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ...impls.masks.counts import unmasked_pairs
from ...impls.problem import Problem
from ..cases.costs import work_flops
from ..rows.plans import sampling_s
from ..rows.warm_up import WARM_AGAIN_S, expected_warm_up_s
from .fields import Plan

STEPS = 4  # operations of a call, of which each takes a moment
SCORE_FLOPS = 40  # of a product in fp32, which take as long as a score in softmax, in caches
SCORE_MOVES = 6  # written, scaled, put through softmax and read again, through memory
RANK = 256  # keys that an approximate backend sees of N
CASE_S = 0.15  # making inputs, preparing, digests
CASE_AGAIN_S = 0.07  # the same in each further process, and a check of its last call
CHECK_CALLS = 3.0  # one is checked, one is measured in memory; both get fresh memory
COMPILE_S, COMPILE_AGAIN_S = 20.0, 5.0  # the second from a cache of what was compiled


class Foreseen(NamedTuple):
    """What is known of a case without running it. `refused`: it will not be called at all."""

    refused: bool = False
    peak_bytes: int | None = None
    compiles: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Rates of a machine as machine/pace.py finds them."""

    flops_per_s: Mapping[str, float]
    bytes_per_s: float
    step_s: float

    def call_s(self, p: Problem, peak_bytes: int | None = None, *, exact: bool = True) -> float:
        """How long a call may take. `exact`: whether the backend computes attention, whose work is
        known. Raises KeyError for a dtype that has no rate here.
        """
        rate, scores = self.flops_per_s[p.dtype], p.batch * p.seq_len * p.kv_seq_len
        seen = unmasked_pairs(p)
        passes = {"forward": 1, "backward": 2, "forward+backward": 3}[p.passes]
        flops, moved_s = float(work_flops(p)), 0.0
        if peak_bytes is not None and peak_bytes >= scores * p.item_bytes:  # of one head at least
            # a backend that has the whole matrix computes the masked pairs too
            flops += 2.0 * (scores - seen) * p.heads * (p.d_k + p.d_v) * passes
            seen = scores
            moved = SCORE_MOVES * scores * p.heads * passes * p.item_bytes
            moved_s = moved / self.bytes_per_s
        elif not exact:
            share = min(1.0, RANK / p.kv_seq_len)
            flops, seen = share * flops, round(share * seen)
        softmax_flops = float(seen * p.heads * passes) * SCORE_FLOPS
        softmax_s = softmax_flops / self.flops_per_s.get("fp32", rate)
        return STEPS * self.step_s + flops / rate + softmax_s + moved_s


def case_s(
    call_s: float,
    plan: Plan,
    device: str,
    measure: Collection[str] = ("latency", "memory"),
    *,
    modes: int = 0,
    compiles: bool = False,
) -> float:
    """How long a case takes whose call takes `call_s`. `modes`: how often each utilization window
    is measured.
    """
    total = CASE_S + CHECK_CALLS * call_s + (COMPILE_S if compiles else 0.0)
    if "latency" in measure:
        total += sampling_s(
            call_s,
            device,
            processes=plan.processes,
            min_blocks=plan.min_blocks,
            max_blocks=plan.max_blocks,
            budget_s=plan.budget_s,
            start_s=CASE_AGAIN_S + (COMPILE_AGAIN_S if compiles else 0.0),
        )
    if modes:
        window_s = modes * (plan.window_s + call_s)
        share_s = plan.budget_s / plan.processes
        again_s = expected_warm_up_s(call_s, share_s, WARM_AGAIN_S)
        total += plan.windows * (window_s + again_s + call_s)
    return total
