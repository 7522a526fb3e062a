"""NVML's view of the GPU that torch uses."""

from typing import Any

import torch


def nvml_handle(device: torch.device) -> tuple[Any, Any]:
    """The NVML module and the handle of the same GPU by its UUID, since NVML and CUDA number GPUs differently; (None, None) without.

    NVML stays open until the process ends: opening it takes longer than asking it.
    """
    try:
        import pynvml
    except ImportError:
        return None, None
    uuid = str(getattr(torch.cuda.get_device_properties(device), "uuid", ""))
    try:
        pynvml.nvmlInit()
        return pynvml, pynvml.nvmlDeviceGetHandleByUUID(uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}")
    except pynvml.NVMLError:
        return None, None
