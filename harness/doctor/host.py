"""Findings on the CPU, its load, settings and memory, and on torch, the driver, CUDA and cuDNN.

A GPU that torch lists may still not work, so torch computes something on it and loads cuDNN.
"""

import os
import resource
import warnings
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import torch

from ...impls._inductor import missing_for_compile
from ..devices.calibration_file import newest_calibration
from ..devices.control_group import MemoryLimit, QuotaLimit, memory_limit, quota
from ..devices.environment import cudnn_path, other_accelerator, pick_device
from ..devices.free_memory import available_bytes, shares_host_memory
from ..devices.nvml import ERROR_TEXTS, Reading, system_fact, without_function
from . import Finding, calibration_finding

CROWDED_SHARE = 0.5
"""Of the cores: a higher load disturbs calls that use them all."""


def host_findings(environment: dict[str, Any], device: torch.device, root: Path) -> list[Finding]:
    """`root`: the folder with the calibrations."""
    free_gib = available_bytes(device) / 2**30
    whose = " (the host's memory)" if device.type == "cuda" and shares_host_memory(device) else ""
    memory = (
        f"{free_gib:.1f} GiB free on {device.type}{whose}; runs take up to 70 % of it by default"
    )
    findings = [
        cpu(environment),
        *load(environment["cores"]),
        *settings(environment["allocator"]),
        Finding("memory", memory),
        *limits(memory_limit(), quota(), resource.getrlimit(resource.RLIMIT_AS)[1]),
    ]
    if device.type == "cpu":
        findings.append(calibration_finding(newest_calibration(root, None, environment["cpu"])))
    return findings


def cpu(environment: dict[str, Any]) -> Finding:
    threads, cores = environment["threads"], environment["cores"]
    usable = min(cores, ceil(environment["quota_cores"] or cores))
    found = (
        f"{environment['cpu'] or 'unknown'}, {usable} usable cores, torch uses {threads} threads"
        f" ({environment['cpu_capability']})"
    )
    if threads == usable:
        return Finding("cpu", found)
    advice = "set OMP_NUM_THREADS, so that runs on other machines can be compared"
    return Finding("cpu", found, "note", "" if "OMP_NUM_THREADS" in os.environ else advice)


def limits(
    memory: MemoryLimit | None, quota: QuotaLimit | None, address_space_bytes: int
) -> list[Finding]:
    """What a container, a service or a shell allows, of which less is free or usable."""
    found = []
    if memory:
        size = f"{memory.limit_bytes / 2**30:.1f} GiB, {memory.free_bytes / 2**30:.1f} free"
        found.append(f"memory {size} ({memory.file})")
    if quota:
        found.append(f"{quota.cores:g} cores ({quota.file})")
    if address_space_bytes != resource.RLIM_INFINITY:
        found.append(f"address space {address_space_bytes / 2**30:.1f} GiB (ulimit -v)")
    return [Finding("limits", "; ".join(found))] if found else []


def load(cores: int) -> list[Finding]:
    average = os.getloadavg()[0]
    if average <= CROWDED_SHARE * cores:
        return []
    advice = (
        "other processes will disturb CPU latencies; wait for them, or measure with --threads 1"
    )
    return [Finding("load", f"{average:.1f} on {cores} cores", "note", advice)]


def settings(variables: dict[str, str]) -> list[Finding]:
    if not variables:
        return []
    found = ", ".join(f"{name}={value}" for name, value in variables.items())
    advice = "these environment variables change numbers and are recorded"
    return [Finding("settings", found, "note", advice)]


# ---- torch, driver, CUDA and cuDNN ---------------------------------------------------------------


NO_DRIVER = (
    ERROR_TEXTS["NVML_ERROR_LIBRARY_NOT_FOUND"],
    ERROR_TEXTS["NVML_ERROR_DRIVER_NOT_LOADED"],
)
DRIVER_FILES = ("/proc/driver/nvidia/version", "/dev/nvidiactl")
"""A loaded driver has them, also if its library is missing or refuses."""
REMEDIES = {
    "busy or unavailable": (
        "another process holds it, or its compute mode forbids programs: see below"
    ),
    "no kernel image": (
        "install a build of torch that has kernels for this GPU's compute capability"
        " (torch.cuda.get_arch_list())"
    ),
    "driver on your system is too old": (
        "update the driver, or install a build of torch for the driver's CUDA version, below"
    ),
}
"""By a part of CUDA's error."""


# ---- trying torch --------------------------------------------------------------------------------

NOT_LOADED = Reading(None, "no GPU to load it for")


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchGpu:
    """The GPU that torch computes on, or None and the `reason`.

    `cudnn`: its version and file, or why it does not load.
    """

    device: torch.device | None
    reason: str = ""
    cudnn: Reading = NOT_LOADED


def try_torch() -> TorchGpu:
    with warnings.catch_warnings(record=True) as caught:  # such as a driver that is too old
        warnings.simplefilter("always")
        device, why = pick_device("cuda")
    if device.type != "cuda":
        return TorchGpu(device=None, reason=first_line(caught[0].message) if caught else why)
    try:
        (torch.ones(64, 64, device=device) @ torch.ones(64, 64, device=device)).sum().item()
    except RuntimeError as error:
        return TorchGpu(device=None, reason=first_line(error))
    return TorchGpu(device=device, cudnn=load_cudnn(device))


def load_cudnn(device: torch.device) -> Reading:
    """By a convolution."""
    try:
        x = torch.ones(1, 8, 8, 8, device=device, dtype=torch.float16)
        torch.nn.functional.conv2d(x, x).sum().item()
        version = torch.backends.cudnn.version()
    except RuntimeError as error:
        return Reading(None, first_line(error))
    path = cudnn_path()
    return Reading((version, path)) if path else Reading(None, "a convolution ran without it")


def first_line(error: object) -> str:
    return (str(error).strip().splitlines() or ["no reason given"])[0][:200]


# ---- findings ------------------------------------------------------------------------------------


def software_findings(
    torch_gpu: TorchGpu, environment: dict[str, Any], gpus: Reading
) -> list[Finding]:
    """`gpus`: what NVML lists (gpu_facts.read_gpus)."""
    build = f"{environment['torch']}, built {built()}"
    if torch_gpu.device is not None:
        unlisted = [] if gpus.value else unlisted_gpu(environment)
        used = Finding("torch", f"{build}, computes on {environment['device_name']}")
        works = [used, cuda(), cudnn(torch_gpu.cudnn), *compilers(torch_gpu.device)]
        return [driver(gpus, has_gpu=True), *unlisted, *works]
    has_gpu = (
        any(Path(file).exists() for file in DRIVER_FILES)
        if gpus.value is None
        else bool(gpus.value)
    )
    if has_gpu:
        found = f"{environment['torch']} cannot use the GPU: {torch_gpu.reason}"
        unused = Finding("torch", found, "bad", remedy(torch_gpu.reason))
        return [driver(gpus, has_gpu=True), unused, cuda()]
    other = other_accelerator()
    advice = (
        "runs measure the CPU: latency by the host's clock, exact memory and CPU time per thread,"
        " but no SM utilization"
    )
    return [
        driver(gpus, has_gpu=False),
        Finding("gpu", f"{other}, not measured", "note", f"with --device cpu {advice}")
        if other
        else Finding("gpu", "none", advice=advice),
        Finding("torch", build),
        Finding("utilization", "host: CPU time of the process, over torch's threads"),
        *compilers(torch.device("cpu")),
    ]


def compilers(device: torch.device) -> list[Finding]:
    """Without one, backends that compile are unavailable."""
    missing = missing_for_compile(device)
    if missing is None:
        return []
    what, _, advice = missing.partition(": ")
    return [Finding("compilers", what, "note", advice)]


def unlisted_gpu(environment: dict[str, Any]) -> list[Finding]:
    """A GPU that torch computes on and NVML does not list."""
    name = (
        f"{environment['device_name']}, compute capability {environment['compute_capability']},"
        f" {environment['device_memory_bytes'] / 2**30:.0f} GiB"
    )
    found = "no counters; derived from FLOPs once attnbench doctor --deep has measured peaks"
    return [Finding("gpu", name), Finding("utilization", found, "note")]


def driver(gpus: Reading, *, has_gpu: bool) -> Finding:
    """The driver through NVML. `has_gpu`: something shows that this machine has an NVIDIA GPU."""
    if gpus.value is None:
        if gpus.reason in NO_DRIVER and not has_gpu:
            return Finding("driver", gpus.reason)
        # A note: without torch's GPU the finding on torch is bad, with it only counters are lost.
        advice = (
            "without it clocks, power, energy and counters are not measured; latency and memory are"
        )
        return Finding("driver", without_function(gpus.reason), "note", advice)
    version, reason = system_fact("nvmlSystemGetDriverVersion")
    if not gpus.value:
        advice = "give the container a GPU (--gpus all), or look for 'fallen off the bus' in dmesg"
        return Finding("driver", f"{version or reason}, loaded, lists no GPU", "note", advice)
    return Finding("driver", version or reason, "ok" if version else "note")


def cuda() -> Finding:
    """A driver runs programs for its CUDA version, for older ones, and for the same major one."""
    newest, reason = system_fact("nvmlSystemGetCudaDriverVersion_v2")
    torchs = f"torch was built {built()}"
    if newest is None:
        return Finding("cuda", f"{torchs}; the driver's version is unknown: {reason}", "note")
    found = f"driver {newest // 1000}.{newest % 1000 // 10}, {torchs}"
    if torch.version.cuda and int(torch.version.cuda.split(".")[0]) > newest // 1000:
        advice = "update the driver, or install a build of torch for the driver's CUDA version"
        return Finding("cuda", found, "note", advice)
    return Finding("cuda", found)


def cudnn(loaded: Reading) -> Finding:
    if loaded.value is None:
        advice = "sdpa:cudnn will not run; usually LD_LIBRARY_PATH names another cuDNN"
        return Finding("cudnn", f"does not load: {loaded.reason}", "note", advice)
    version, path = loaded.value
    return Finding("cudnn", f"{version} from {path}")


def built() -> str:
    return "without CUDA" if torch.version.cuda is None else f"for CUDA {torch.version.cuda}"


def remedy(reason: str) -> str:
    """What to do if there is a GPU and torch cannot use it."""
    for part, advice in REMEDIES.items():
        if part in reason:
            return advice
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if torch.version.cuda is None:
        return (
            "install a build of torch for a CUDA version that the driver has"
            " (pytorch.org/get-started)"
        )
    if visible is not None:
        return f"CUDA_VISIBLE_DEVICES={visible!r} may hide it; unset it"
    return "compare the driver's CUDA version with torch's, below"
