"""Findings on the CPU, its load and the memory that a run would have."""

import os
from math import ceil
from pathlib import Path
from typing import Any

import torch

from ..calibration.calibrate import newest_calibration
from ..measure.memory_budget import available_bytes
from .calibration import calibration
from .finding import Finding

CROWDED_SHARE = 0.5
"""Of the cores: a load above it disturbs calls that use them all."""


def host(facts: dict[str, Any], device: torch.device, root: Path) -> list[Finding]:
    """Findings on what is not a GPU; the CPU's calibration stands in `root`."""
    free = available_bytes(device)
    memory = Finding(
        about="memory",
        found=(
            f"{free / 2**30:.1f} GiB free on {device.type}; runs take up to 70 % of it by default"
        ),
    )
    kept = calibration(newest_calibration(root, None, facts["cpu"]))
    return [
        cpu(facts),
        *load(facts["cores"]),
        *settings(facts["allocator"]),
        memory,
        *([kept] if device.type == "cpu" else []),
    ]


def cpu(facts: dict[str, Any]) -> Finding:
    threads, cores = (
        facts["threads"],
        min(facts["cores"], ceil(facts["quota_cores"] or facts["cores"])),
    )
    found = (
        f"{facts['cpu'] or 'unknown'}, {cores} usable cores, torch uses {threads} threads"
        f" ({facts['cpu_capability']})"
    )
    if threads == cores:
        return Finding(about="cpu", found=found)
    advice = (
        ""
        if "OMP_NUM_THREADS" in os.environ
        else "set OMP_NUM_THREADS, so that runs on other machines can be compared"
    )
    return Finding(about="cpu", found=found, grade="note", advice=advice)


def load(cores: int) -> list[Finding]:
    try:
        average = float(Path("/proc/loadavg").read_text().split()[0])
    except (OSError, ValueError):
        return []
    if average <= CROWDED_SHARE * cores:
        return []
    advice = "other processes will disturb CPU latencies; wait for them"
    return [
        Finding(about="load", found=f"{average:.1f} on {cores} cores", grade="note", advice=advice)
    ]


def settings(variables: dict[str, str]) -> list[Finding]:
    if not variables:
        return []
    found = ", ".join(f"{name}={value}" for name, value in variables.items())
    return [
        Finding(
            about="settings",
            found=found,
            grade="note",
            advice="these environment variables change numbers and are recorded",
        )
    ]
