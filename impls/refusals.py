"""What flex_attention and Hugging Face's functions need here and refuse, without importing torch.

`discovery.loading.described` asks it. Of a device only `type` is read.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from .problem import Device, Problem
from .shared.cpu_flags import cpu_flags
from .shared.flash_attention import missing, other_corner
from .shared.inductor import missing_for_compile, missing_to_compile

if TYPE_CHECKING:
    import torch

NARROWEST = 16  # columns that Triton's matrix product needs
DECODED = (
    128  # queries that the decode kernel takes fewer than (torch/_inductor/.../flex_decoding.py)
)


def flex_unavailable(device: Device, *, variant: str = "") -> str | None:
    if variant and device.type != "cuda":
        return f"flex_attention has its {variant} kernel for CUDA only, not for {device.type}"
    if variant == "flash" and (reason := missing("flash-attn-4", device, "flex:flash")):
        return reason
    reason = missing_to_compile(device)
    if reason is None and device.type == "cpu" and "avx2" not in cpu_flags():
        return "flex_attention on a CPU needs AVX2"
    return reason


def flex_unavailable_here(device: "torch.device", *, variant: str = "") -> str | None:
    """And the GPU's age, which imports torch."""
    return flex_unavailable(device, variant=variant) or missing_for_compile(device)


def flex_why_not(problem: Problem, device: Device, *, variant: str = "") -> str | None:
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


# ---- hf ------------------------------------------------------------------------------------------

DEFAULT = "sdpa"
PACKAGES = {
    "flash_attention_2": ("flash-attn", "kernels-community/flash-attn2"),
    "flash_attention_3": ("flash-attn-3", "kernels-community/vllm-flash-attn3"),
    "flash_attention_4": ("flash-attn-4", "kernels-community/flash-attn4"),
}
"""The distribution that has it, and what transformers 5.23 takes from the Hub in its place."""
FLASH = (*PACKAGES, "kernel")
WIDEST = 256  # columns of a head that flash-attn has kernels for


def hf_unavailable(device: Device, *, variant: str, repo: str | None) -> str | None:
    if variant == "flex_attention":
        return flex_unavailable(device)
    if variant == "paged|eager":
        return (
            "paged|eager needs the paged cache of continuous batching; hf:eager computes the same"
            " without one"
        )
    if variant not in FLASH:
        return None
    if variant == "kernel" and "/" not in (repo or ""):
        return f"repo: found {repo}; wanted a kernel of the Hub, as hf:kernel[repo=owner/name]"
    package, instead = PACKAGES.get(variant, ("kernels", ""))
    reason = missing(package, device, variant)
    if reason and instead and device.type == "cuda":
        return f"{reason}; or --backends {instead} --allow-import"
    return reason


def hf_why_not(problem: Problem, device: Device, *, variant: str, repo: str | None) -> str | None:
    p = problem
    if repo is not None and variant != "kernel":
        return f"repo belongs to hf:kernel; found it with {variant or DEFAULT}"
    if variant == "flex_attention":
        return flex_why_not(problem, device)
    if variant == "eager" and p.softcap and p.sinks:
        return "hf:eager computes softcap or sinks, not both: no model of transformers has both"
    if variant in ("", "sdpa") and p.softcap:
        return "transformers' sdpa has no softcap; hf:eager and hf:flex_attention have it"
    if variant in ("", "sdpa", *PACKAGES) and p.sinks:
        return f"transformers' {variant or DEFAULT} has no sinks; hf:eager has them"
    if variant not in FLASH:
        return None
    if p.mask == "chunked":
        return "flash-attn does not compute the mask chunked"
    if p.dtype == "fp32":
        return "flash-attn takes fp16 and bf16, not fp32"
    if p.d_k > WIDEST:
        return f"heads are {p.d_k} wide; flash-attn has kernels for up to {WIDEST}"
    corner = other_corner(p)
    return f"flash-attn: {corner}" if corner else None


REFUSALS: dict[str, dict[str, Callable[..., str | None]]] = {
    "flex": {"unavailable": flex_unavailable, "why_not": flex_why_not},
    "hf": {"unavailable": hf_unavailable, "why_not": hf_why_not},
}
"""By the names of backends' files."""
