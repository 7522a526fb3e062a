"""What torch's flex_attention needs, but for the GPU's age, and the problems that it refuses."""

from typing import TYPE_CHECKING

from ..problem import Device, Problem
from ..shared.cpu_flags import cpu_flags
from ..shared.flash_attention import missing
from ..shared.inductor import missing_for_compile, missing_to_compile

if TYPE_CHECKING:
    import torch

NARROWEST = 16  # columns that Triton's matrix product needs
DECODED = (
    128  # queries that the decode kernel takes fewer than (torch/_inductor/.../flex_decoding.py)
)


def unavailable(device: Device, *, variant: str = "") -> str | None:
    if variant and device.type != "cuda":
        return f"flex_attention has its {variant} kernel for CUDA only, not for {device.type}"
    if variant == "flash" and (reason := missing("flash-attn-4", device, "flex:flash")):
        return reason
    reason = missing_to_compile(device)
    if reason is None and device.type == "cpu" and "avx2" not in cpu_flags():
        return "flex_attention on a CPU needs AVX2"
    return reason


def unavailable_here(device: "torch.device", *, variant: str = "") -> str | None:
    """And the GPU's age, which imports torch."""
    return unavailable(device, variant=variant) or missing_for_compile(device)


def why_not(problem: Problem, device: Device, *, variant: str = "") -> str | None:
    p = problem
    if device.type == "cpu":
        if p.sinks:
            return "sinks need the log-sum-exp, which flex_attention returns on a GPU only"
        return "flex_attention has no backward pass on a CPU" if p.backward else None
    width, queries, group = min(p.d_k, p.d_v), p.seq_len - p.empty_rows, p.heads // p.kv_heads
    if width < NARROWEST:
        return f"heads are {width} wide; flex_attention on a GPU needs {NARROWEST} or more"
    if variant == "decode" and queries >= DECODED:
        return f"flex:decode takes fewer than {DECODED} queries, not {queries}"
    if variant == "decode" and group.bit_count() > 1:
        return f"{group} heads share a key; flex:decode needs 1, 2, 4 or another power of two"
    if variant == "flash" and p.dtype == "fp32":
        return "flex:flash takes bf16 and fp16 only, not fp32"
    if variant == "flash" and p.sinks and p.backward:
        return "flex:flash gives no gradient of the log-sum-exp, which sinks need"
    return None
