"""A bare function as a backend: attend(q, k, v, *, causal, scale), as users have one lying
about.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..backend import Call, Inputs, Weights
from ..layer import as_call
from ..problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainCallable:
    """Stands where a backend's module stands.

    q is [batch, heads, seq_len, d_k], k and v are [batch, kv_heads, kv_seq_len, d_k or d_v]; the
    function returns [batch, heads, seq_len, d_v]. In scope "layer" q, k and v are views of the
    projections, and not contiguous.
    """

    function: Callable[..., Tensor]

    def why_not(self, problem: Problem, device: torch.device) -> str | None:
        if problem.causal and problem.kv_seq_len != problem.seq_len:
            return (
                "a plain callable is told causal or not, and not from which corner; give a module"
                " with prepare for kv_seq_len != seq_len"
            )
        return None

    def prepare(self, problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
        function, causal, scale = self.function, problem.causal, problem.scale
        return as_call(
            problem, inputs, weights, lambda q, k, v: function(q, k, v, causal=causal, scale=scale)
        )
