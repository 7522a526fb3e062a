"""What torch's flex_attention needs, but for the GPU's age, and the problems that it refuses."""

from typing import TYPE_CHECKING

from ..problem import Device, Problem
from ..shared.cpu_flags import cpu_flags
from ..shared.inductor import missing_for_compile, missing_to_compile

if TYPE_CHECKING:
    import torch

NARROWEST = 16  # columns that Triton's matrix product needs


def unavailable(device: Device) -> str | None:
    reason = missing_to_compile(device)
    if reason is None and device.type == "cpu" and "avx2" not in cpu_flags():
        return "flex_attention on a CPU needs AVX2"
    return reason


def unavailable_here(device: "torch.device") -> str | None:
    """And the GPU's age, which imports torch."""
    return missing_for_compile(device) or unavailable(device)


def why_not(problem: Problem, device: Device) -> str | None:
    if device.type == "cpu":
        if problem.sinks:
            return "flex_attention gives no log-sum-exp on a CPU, from which sinks are computed"
        return "flex_attention has no backward pass on a CPU" if problem.backward else None
    width = min(problem.d_k, problem.d_v)
    if width < NARROWEST:
        return f"heads are {width} wide; flex_attention on a GPU needs {NARROWEST} or more"
    return None
