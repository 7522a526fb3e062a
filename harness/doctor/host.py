"""Findings on the CPU, its load, settings, and the memory that a run would have."""

import os
from math import ceil
from pathlib import Path
from typing import Any

import torch

from ..calibration.file import newest_calibration
from ..measure.memory_budget import available_bytes
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
