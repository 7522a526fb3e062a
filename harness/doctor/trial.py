"""Whether torch can really use a GPU: it is asked to compute on it, and to load cuDNN. To be listed
is not to work.
"""

import warnings
from dataclasses import dataclass

import torch

from ..environment import loaded_library, pick_device
from ..nvml import Answer

NOT_TRIED = Answer(None, "no GPU to load it for")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """`device`: what torch computed on; None where it could not, and then `reason` says why.
    `cudnn`: version and file, where it loads.
    """

    device: torch.device | None
    reason: str = ""
    cudnn: Answer = NOT_TRIED


def try_torch() -> Trial:
    with warnings.catch_warnings(
        record=True
    ) as said:  # torch warns why it finds no device, such as a driver that is too old
        warnings.simplefilter("always")
        device, why = pick_device("cuda")
    if device.type != "cuda":
        return Trial(device=None, reason=first_line(said[0].message) if said else why)
    try:
        (torch.ones(64, 64, device=device) @ torch.ones(64, 64, device=device)).sum().item()
    except RuntimeError as error:
        return Trial(device=None, reason=first_line(error))
    return Trial(device=device, cudnn=load_cudnn(device))


def load_cudnn(device: torch.device) -> Answer:
    """A convolution loads it; a system's copy may shadow the wheel's (transformers#48163)."""
    try:
        x = torch.ones(1, 8, 8, 8, device=device, dtype=torch.float16)
        torch.nn.functional.conv2d(x, x).sum().item()
        version = torch.backends.cudnn.version()
    except RuntimeError as error:
        return Answer(None, first_line(error))
    path = loaded_library("libcudnn.so") or loaded_library("libcudnn")
    return Answer((version, path)) if path else Answer(None, "a convolution ran without it")


def first_line(error: object) -> str:
    return (str(error).strip().splitlines() or ["no reason given"])[0][:200]
