"""What numbers depend on: machine, versions and settings, collected once per run in a worker."""

import os
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from math import ceil
from pathlib import Path
from typing import Any

import torch

from ... import __version__
from .host import SETTINGS, cpu_cache_bytes, cpu_name, host_available_bytes, host_total_bytes, quota
from .nvml import SharedMemory, each_gpu, has_gpu, memory_info, nvml_device, system_fact


def pick_device(requested: str) -> tuple[torch.device, str]:
    """The device to measure on, and why there is none ("" if there is).

    "auto" takes a GPU if torch finds one, and the CPU only where that passes over no accelerator.
    """
    if requested == "cpu":
        return torch.device("cpu"), ""
    other = other_accelerator()
    if not other and torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device()), ""
    why = (
        "torch was built without CUDA"
        if torch.version.cuda is None
        else "torch finds no usable CUDA device"
    )
    if other:
        why = f"torch computes on {other} here, and attnbench measures NVIDIA GPUs and CPUs only"
    elif requested == "auto":
        why = f"the NVIDIA GPU here cannot be used: {why}" if has_gpu() else ""
    return torch.device("cpu"), why


def other_accelerator() -> str:
    """What torch would compute on and attnbench does not measure; "" if there is none."""
    found = torch.accelerator.current_accelerator(check_available=True)
    if found is None or (found.type == "cuda" and not torch.version.hip):
        return ""
    names = {
        "cuda": f"an AMD GPU (ROCm {torch.version.hip})",
        "xpu": "an Intel GPU (XPU)",
        "mps": "an Apple GPU (MPS)",
    }
    return names.get(found.type, f"a device of type {found.type}")


def available_bytes(device: torch.device) -> int:
    """Free memory: the device's, or the host's, which some GPUs share. Of that CUDA says how much
    nobody uses, without the page cache, which the kernel gives back.
    """
    if device.type != "cuda" or shares_host_memory(device):
        return host_available_bytes()
    return int(torch.cuda.mem_get_info(device)[0])


def shares_host_memory(device: torch.device) -> bool:
    with suppress(AssertionError, RuntimeError):  # a torch that cannot use the GPU
        properties = torch.cuda.get_device_properties(device)
        return bool(getattr(properties, "is_integrated", False))
    gpus = [one.value for one in each_gpu().value or [] if one.value]
    return len(gpus) == 1 and isinstance(memory_info(gpus[0]).value, SharedMemory)


def fix_threads() -> None:
    """One thread per core that this process may use, unless OMP_NUM_THREADS is set.

    Torch counts the cores it sees: under a CPU quota of 2 cores on a machine of 64 it would start
    64 threads and be throttled.
    """
    if "OMP_NUM_THREADS" not in os.environ:
        allowed = ceil(quota_cores() or torch.get_num_threads())
        torch.set_num_threads(max(1, min(len(os.sched_getaffinity(0)), allowed)))


def quota_cores() -> float | None:
    """The control groups' CPU quota in cores; None if there is none."""
    limit = quota()
    return limit.cores if limit else None


OF_GPU = (
    *("device_name", "device_uuid", "compute_capability", "device_memory_bytes", "driver"),
    "cudnn_path",
)


def collect(device: torch.device) -> dict[str, Any]:
    """Facts for run.json; an unknown fact is null."""
    facts: dict[str, Any] = {
        "device": device.type,
        **dict.fromkeys(OF_GPU),
        "cuda": torch.version.cuda,
        "cudnn": cudnn_version(),
        "cpu": cpu_name(),
        "cpu_cache_bytes": cpu_cache_bytes(os.sched_getaffinity(0)),
        "cores": len(os.sched_getaffinity(0)),
        "affinity": sorted(os.sched_getaffinity(0)),
        "quota_cores": quota_cores(),
        "threads": torch.get_num_threads(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "host_memory_bytes": host_total_bytes(),
        "system": platform.platform(),
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": triton_version(),
        "tf32": torch.get_float32_matmul_precision() != "highest",
        "attnbench": __version__,
        "allocator": {name: os.environ[name] for name in SETTINGS if name in os.environ},
    }
    if device.type == "cuda":
        facts |= cuda_facts(device)
    return facts


def cuda_facts(device: torch.device) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(device)
    return {
        "device_name": properties.name,
        "device_uuid": nvml_device(device).uuid,
        "compute_capability": f"{properties.major}.{properties.minor}",
        "device_memory_bytes": properties.total_memory,
        "cudnn_path": cudnn_path(),
        "driver": system_fact("nvmlSystemGetDriverVersion").value,
    }


def cudnn_version() -> int | None:
    """As loaded; None also if the library's version is not the one that torch was built for."""
    with suppress(RuntimeError):
        version: int | None = torch.backends.cudnn.version()
        return version
    return None


def cudnn_path() -> str | None:
    """The library that is loaded: a system copy may shadow the wheel's (transformers#48163)."""
    with suppress(OSError):
        lines = Path("/proc/self/maps").read_text().splitlines()
        paths = {Path(line.split(maxsplit=5)[-1]) for line in lines}
        found = sorted(path for path in paths if path.name.startswith("libcudnn"))
        first = min(found, key=lambda path: not path.name.startswith("libcudnn.so"), default=None)
        return None if first is None else str(first)
    return None


def triton_version() -> str | None:
    """As installed; it is not imported."""
    with suppress(PackageNotFoundError):
        return version("triton")
    return None
