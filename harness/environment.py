"""What a number depends on: machine, versions and settings, collected once per run inside the
worker.
"""

import os
import platform
import subprocess
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from math import ceil
from pathlib import Path
from typing import Any

import torch

from .. import __version__
from .nvml import identity, system_fact

CGROUP = Path("/sys/fs/cgroup")

SETTINGS = (  # environment variables that change numbers; no other variable is recorded
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_SCALE_LAUNCH_QUEUES",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_ARENA_MAX",
    "LD_PRELOAD",
    "NVIDIA_TF32_OVERRIDE",
)


def pick_device(wanted: str) -> tuple[torch.device, str]:
    """The device to measure on, and why it is not the wanted one ("" if it is). "auto" takes a GPU
    where torch sees one.
    """
    if wanted == "cpu":
        return torch.device("cpu"), ""
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device()), ""
    why = (
        "torch was built without CUDA"
        if torch.version.cuda is None
        else "torch finds no usable CUDA device"
    )
    return torch.device("cpu"), "" if wanted == "auto" else why


def fix_threads() -> None:
    """One thread per core that this process may really use, unless the user says otherwise by
    OMP_NUM_THREADS.

    Torch counts the cores it sees: under a CPU quota of 2 cores on a machine of 64 it would start
    64 threads and be throttled.
    """
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(
            max(
                1, min(len(os.sched_getaffinity(0)), ceil(quota_cores() or torch.get_num_threads()))
            )
        )


def quota_cores() -> float | None:
    """The control group's CPU quota in cores (cpu.max of cgroup v2, cpu.cfs_* of v1); None where
    there is none.
    """
    with suppress(OSError, ValueError, IndexError):
        quota, period = (CGROUP / "cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    with suppress(OSError, ValueError):
        quota_us = int((CGROUP / "cpu/cpu.cfs_quota_us").read_text())
        return (
            None if quota_us < 0 else quota_us / int((CGROUP / "cpu/cpu.cfs_period_us").read_text())
        )
    return None


def collect(device: torch.device) -> dict[str, Any]:
    """Facts for run.json. A fact that cannot be had is null."""
    facts: dict[str, Any] = {
        "device": device.type,
        "device_name": None,
        "device_uuid": None,
        "compute_capability": None,
        "device_memory_bytes": None,
        "driver": None,
        "cuda": torch.version.cuda,
        "cudnn": cudnn_version(),
        "cudnn_path": None,
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "affinity": sorted(os.sched_getaffinity(0)),
        "quota_cores": quota_cores(),
        "threads": torch.get_num_threads(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "host_memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": triton_version(),
        "tf32": torch.get_float32_matmul_precision() != "highest",
        "attnbench": __version__,
        "git": git_commit(),
        "allocator": {name: os.environ[name] for name in SETTINGS if name in os.environ},
    }
    if device.type == "cuda":
        facts |= cuda_facts(device)
    return facts


def cuda_facts(device: torch.device) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(device)
    return {
        "device_name": properties.name,
        "device_uuid": identity(device).uuid,
        "compute_capability": f"{properties.major}.{properties.minor}",
        "device_memory_bytes": properties.total_memory,
        "cudnn_path": loaded_library("libcudnn.so") or loaded_library("libcudnn"),
        "driver": system_fact("nvmlSystemGetDriverVersion").value,
    }


def cudnn_version() -> int | None:
    """As loaded; None also where a library of another version than torch was built for stands in
    its place.
    """
    with suppress(RuntimeError):
        version: int | None = torch.backends.cudnn.version()
        return version
    return None


def triton_version() -> str | None:
    """As installed; it is not imported."""
    with suppress(PackageNotFoundError):
        return version("triton")
    return None


def loaded_library(name: str) -> str | None:
    """The file from which a library was really loaded: a system copy may shadow the wheel's
    (transformers#48163).
    """
    with suppress(OSError):
        for line in Path("/proc/self/maps").read_text().splitlines():
            path = line.split(maxsplit=5)[-1]
            if Path(path).name.startswith(name):
                return path
    return None


def cpu_name() -> str | None:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or None


def git_commit() -> str | None:
    """The commit of this package's checkout; None where it is no checkout."""
    here = Path(__file__).resolve().parent.parent
    if not (here / ".git").exists():
        return None
    with suppress(OSError, subprocess.SubprocessError):
        command = ["git", "-C", str(here), "rev-parse", "--short=12", "HEAD"]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=10, check=True
        ).stdout.strip()
    return None
