"""Findings on torch, the driver, CUDA and cuDNN, and whether they fit each other."""

import os
from pathlib import Path
from typing import Any

import torch

from ..nvml import WORDS, Answer, system_fact
from .finding import Finding
from .trial import Trial

ABSENT = (WORDS["NVML_ERROR_LIBRARY_NOT_FOUND"], WORDS["NVML_ERROR_DRIVER_NOT_LOADED"])
NO_COUNTERS = (
    "latency by the host's clock and exact memory are measured on the CPU, with CPU time per"
    " thread; SM utilization is not"
)

DRIVER_FILES = ("/proc/driver/nvidia/version", "/dev/nvidiactl")
"""What a loaded driver shows, also where its library is missing or refuses."""
REMEDIES = {  # by what CUDA's errors say
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


def software(trial: Trial, facts: dict[str, Any], seen: Answer) -> list[Finding]:
    """`seen` is what gpu_facts.look came to."""
    build = f"{facts['torch']}, built {built()}"
    there = (
        bool(seen.value)
        if seen.value is not None
        else any(Path(file).exists() for file in DRIVER_FILES)
    )
    findings = [nvml(seen, there=there or trial.device is not None)]
    if trial.device is not None:
        if not seen.value:
            name = (
                f"{facts['device_name']}, compute capability {facts['compute_capability']},"
                f" {facts['device_memory_bytes'] / 2**30:.0f} GiB"
            )
            found = (
                "no counters; derived from FLOPs once attnbench doctor --calibrate has measured"
                " peaks"
            )
            findings += [
                Finding(about="gpu", found=name),
                Finding(about="utilization", found=found, grade="note"),
            ]
        findings.append(
            Finding(about="torch", found=f"{build}, computes on {facts['device_name']}")
        )
        findings += [cuda(), cudnn(trial.cudnn)]
    elif there:
        findings.append(
            Finding(
                about="torch",
                found=f"{facts['torch']} cannot use the GPU: {trial.reason}",
                grade="bad",
                advice=remedy(trial.reason),
            )
        )
        findings.append(cuda())
    else:
        findings.append(Finding(about="gpu", found="none", advice=NO_COUNTERS))
        findings.append(Finding(about="torch", found=build))
        findings.append(
            Finding(
                about="utilization", found="host: CPU time of the process, over torch's threads"
            )
        )
    return findings


def nvml(seen: Answer, *, there: bool) -> Finding:
    """The driver as it answers through NVML. `there`: something shows that this machine has an
    NVIDIA GPU.
    """
    driver = system_fact("nvmlSystemGetDriverVersion")
    if seen.value is None:
        absent = seen.reason in ABSENT and not there
        advice = (
            ""
            if absent
            else (
                "without it clocks, power, energy and counters are not measured; latency and"
                " memory are"
            )
        )
        # With a GPU that torch uses a silent NVML costs counters only; without one, torch's own
        # finding is the bad one.
        return Finding(
            about="driver", found=seen.reason, grade="ok" if absent else "note", advice=advice
        )
    if not seen.value:
        advice = "give the container a GPU (--gpus all), or look for 'fallen off the bus' in dmesg"
        return Finding(
            about="driver",
            found=f"{driver.value or driver.reason}, loaded, and shows no GPU",
            grade="note",
            advice=advice,
        )
    return Finding(
        about="driver",
        found=str(driver.value or driver.reason),
        grade="note" if driver.value is None else "ok",
    )


def cuda() -> Finding:
    """A driver runs programs of its own CUDA version and of older ones, and newer ones of the same
    first number.
    """
    newest = system_fact("nvmlSystemGetCudaDriverVersion_v2")
    ours = f"torch was built {built()}"
    if newest.value is None:
        return Finding(
            about="cuda", found=f"{ours}; the driver's is not known: {newest.reason}", grade="note"
        )
    found = f"driver {newest.value // 1000}.{newest.value % 1000 // 10}, {ours}"
    if torch.version.cuda and int(torch.version.cuda.split(".")[0]) > newest.value // 1000:
        return Finding(
            about="cuda",
            found=found,
            grade="note",
            advice="update the driver, or install torch for the driver's CUDA",
        )
    return Finding(about="cuda", found=found)


def built() -> str:
    return "without CUDA" if torch.version.cuda is None else f"for CUDA {torch.version.cuda}"


def cudnn(answer: Answer) -> Finding:
    if answer.value is None:
        advice = (
            "sdpa:cudnn will not run; an LD_LIBRARY_PATH that names another cuDNN is the usual"
            " reason"
        )
        return Finding(
            about="cudnn", found=f"does not load: {answer.reason}", grade="note", advice=advice
        )
    version, path = answer.value
    return Finding(about="cudnn", found=f"{version} from {path}")


def remedy(reason: str) -> str:
    """What to do where a GPU is there and torch cannot use it."""
    for sign, advice in REMEDIES.items():
        if sign in reason:
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
