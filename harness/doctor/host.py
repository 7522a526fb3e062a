"""Findings on the CPU, its load, settings, and the memory that a run would have."""

import os
import resource
from math import ceil
from pathlib import Path
from typing import Any

import torch

from ..machine.calibration_file import newest_calibration
from ..machine.control_group import MemoryLimit, QuotaLimit, memory_limit, quota
from ..machine.free_memory import available_bytes
from .finding import Finding, calibration_finding

CROWDED_SHARE = 0.5
"""Of the cores: a higher load disturbs calls that use them all."""


def host_findings(environment: dict[str, Any], device: torch.device, root: Path) -> list[Finding]:
    """`root`: the folder with the calibrations."""
    free_gib = available_bytes(device) / 2**30
    memory = f"{free_gib:.1f} GiB free on {device.type}; runs take up to 70 % of it by default"
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
    try:
        average = float(Path("/proc/loadavg").read_text().split()[0])
    except (OSError, ValueError):
        return []
    if average <= CROWDED_SHARE * cores:
        return []
    advice = "other processes will disturb CPU latencies; wait for them"
    return [Finding("load", f"{average:.1f} on {cores} cores", "note", advice)]


def settings(variables: dict[str, str]) -> list[Finding]:
    if not variables:
        return []
    found = ", ".join(f"{name}={value}" for name, value in variables.items())
    advice = "these environment variables change numbers and are recorded"
    return [Finding("settings", found, "note", advice)]
