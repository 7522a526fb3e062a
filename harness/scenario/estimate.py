"""How long calls and cases may take, before anything runs: by which shards are cut.

A call takes its FLOPs, and the exponentials of its scores, at the rate of matrix products. How
often a case is called follows from the plan.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ...impls.masks.counts import unmasked_pairs
from ...impls.problem import Problem
from ..cases.costs import work_flops
from ..rows.plans import sampling_s
from .fields import Plan

STEPS = 4  # operations of a call, of which each takes a moment
SCORE_FLOPS = 40  # of a product in fp32, which take as long as a score in softmax, in caches
CASE_S = 0.15  # making inputs, preparing, digests
CASE_AGAIN_S = 0.07  # the same in each further process, and a check of its last call
CHECK_CALLS = 3.0  # one is checked, one is measured in memory; both get fresh memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Rates of a machine as machine/pace.py finds them."""

    flops_per_s: Mapping[str, float]
    step_s: float

    def call_s(self, p: Problem) -> float:
        """How long a call of an exact backend may take. Raises KeyError for a dtype that has no
        rate here.
        """
        rate = self.flops_per_s[p.dtype]
        passes = {"forward": 1, "backward": 2, "forward+backward": 3}[p.passes]
        softmax_flops = float(unmasked_pairs(p) * p.heads * passes) * SCORE_FLOPS
        softmax_s = softmax_flops / self.flops_per_s.get("fp32", rate)
        return STEPS * self.step_s + float(work_flops(p)) / rate + softmax_s


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
