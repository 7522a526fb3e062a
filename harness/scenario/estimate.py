"""How long calls and cases may take, before anything runs: by which shards are cut.

A call takes its FLOPs, and the exponentials of its scores, at the rate of matrix products. How
often a case is called follows from the plan.
"""

from ...impls.masks.counts import unmasked_pairs
from ...impls.problem import Problem
from ..cases.costs import work_flops
from ..rows.plans import sampling_s
from .fields import Plan

FLOPS_PER_S = {"cpu": 1e11, "cuda": 1e14}
"""Of no machine, for those who only compare cases."""
CALL_S = 4e-5  # of a call that hardly does anything
SCORE_FLOPS = 40  # of a product in fp32, which take as long as a score in softmax, in caches
CASE_S = 0.15  # making inputs, preparing, digests
CASE_AGAIN_S = 0.07  # the same in each further process, and a check of its last call
CHECK_CALLS = 3.0  # one is checked, one is measured in memory; both get fresh memory


def call_s(problem: Problem, flops_per_s: float) -> float:
    """How long a call of an exact backend may take."""
    p = problem
    passes = {"forward": 1, "backward": 2, "forward+backward": 3}[p.passes]
    softmax_flops = unmasked_pairs(p) * p.heads * passes * SCORE_FLOPS
    return CALL_S + (work_flops(p) + softmax_flops) / flops_per_s


def case_s(call_s: float, plan: Plan, device: str) -> float:
    """How long a case takes whose call takes `call_s`."""
    sampled_s = sampling_s(
        call_s,
        device,
        processes=plan.processes,
        min_blocks=plan.min_blocks,
        max_blocks=plan.max_blocks,
        budget_s=plan.budget_s,
        start_s=CASE_AGAIN_S,
    )
    return CASE_S + CHECK_CALLS * call_s + sampled_s
