"""What Hugging Face's functions need here, and the problems that they refuse."""

from ..problem import Device, Problem
from ..shared.flash_attention import missing, other_corner
from . import flex

DEFAULT = "sdpa"
PACKAGES = {
    "flash_attention_2": ("flash-attn", "kernels-community/flash-attn2"),
    "flash_attention_3": ("flash-attn-3", "kernels-community/vllm-flash-attn3"),
    "flash_attention_4": ("flash-attn-4", "kernels-community/flash-attn4"),
}
"""The distribution that has it, and what transformers 5.23 takes from the Hub in its place."""
FLASH = (*PACKAGES, "kernel")
WIDEST = 256  # columns of a head that flash-attn has kernels for


def unavailable(device: Device, *, variant: str, repo: str | None) -> str | None:
    if variant == "flex_attention":
        return flex.unavailable(device)
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


def why_not(problem: Problem, device: Device, *, variant: str, repo: str | None) -> str | None:
    p = problem
    if repo is not None and variant != "kernel":
        return f"repo belongs to hf:kernel; found it with {variant or DEFAULT}"
    if variant == "flex_attention":
        return flex.why_not(problem, device)
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
