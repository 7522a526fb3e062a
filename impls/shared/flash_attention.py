"""FlashAttention's packages and others that bring a kernel: where they run, and what installs them.

Found by their distribution, since several share a module. Imports no torch but for a GPU's age.
"""

from importlib.metadata import PackageNotFoundError, version

from ..problem import Device, Problem

INSTALL = {
    # wheels of pytorch.org, not on the package index; torch's own line (flex_flash_attention.py)
    "flash-attn-3": "flash-attn-3 --find-links https://download.pytorch.org/whl/flash-attn-3/",
    "flash-attn-4": "--pre flash-attn-4",
}
"""What pip installs, where it is not the name alone."""


def missing(package: str, device: Device, who: str, majors: tuple[int, ...] = ()) -> str | None:
    """Why `who` cannot run here: no CUDA device, no such package, or a GPU of another generation
    than `majors`, the major numbers of compute capabilities (all if there are none).
    """
    if device.type != "cuda":
        return f"{who} needs a CUDA device; this is {device.type}"
    try:
        version(package)
    except PackageNotFoundError:
        line = INSTALL.get(package, package)
        return f"needs {package}, which is not installed: pip install {line}"
    if not majors:
        return None
    import torch

    major, minor = torch.cuda.get_device_capability(device)  # type: ignore[arg-type]
    wanted = " or ".join(f"{one}.x" for one in majors)
    found = f"{who} needs a GPU of compute capability {wanted}; this one has {major}.{minor}"
    return None if major in majors else found


def other_corner(problem: Problem) -> str | None:
    """That FlashAttention's causal triangle is not the problem's; None if it is."""
    if problem.causal_align != "top_left" or problem.seq_len == problem.kv_seq_len:
        return None
    return "its causal triangle starts at the bottom right, this one at the top left"
