"""Memory that is free on a device."""

from contextlib import suppress
from typing import TYPE_CHECKING

from .host_memory import host_available_bytes
from .nvml import SharedMemory, each_gpu, memory_info

if TYPE_CHECKING:
    import torch


def available_bytes(device: "torch.device") -> int:
    """Free memory: the device's, or the host's, which some GPUs share. Of that CUDA says how much
    nobody uses, without the page cache, which the kernel gives back.
    """
    if device.type != "cuda" or shares_host_memory(device):
        return host_available_bytes()
    import torch

    return int(torch.cuda.mem_get_info(device)[0])


def shares_host_memory(device: "torch.device") -> bool:
    import torch

    with suppress(AssertionError, RuntimeError):  # a torch that cannot use the GPU
        properties = torch.cuda.get_device_properties(device)
        return bool(getattr(properties, "is_integrated", False))
    gpus = [one.value for one in each_gpu().value or [] if one.value]
    return len(gpus) == 1 and isinstance(memory_info(gpus[0]).value, SharedMemory)
