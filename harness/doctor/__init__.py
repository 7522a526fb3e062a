"""What this machine can measure, and what stands in the way: a finding on each.

gpu_facts.py reads NVML, gpu_findings.py grades it; host.py covers the rest. Nothing
here measures a backend, and a driver that refuses raises nothing.
"""

from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

Grade = Literal["ok", "note", "bad"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`grade` bad: a run on the GPU is impossible or cannot be trusted.

    `gpu`: the short UUID of the GPU that it is about, "" for the machine.
    """

    about: str
    found: str
    grade: Grade = "ok"
    advice: str = ""
    gpu: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All findings. `gpus`: NVML's facts about each GPU and each instance of one (MIG)."""

    findings: tuple[Finding, ...]
    environment: dict[str, Any]
    gpus: tuple[dict[str, Any], ...] = ()

    @property
    def exit_code(self) -> int:
        """4 if a GPU is there that cannot be used, or runs on it cannot be trusted."""
        return 4 if any(finding.grade == "bad" for finding in self.findings) else 0

    def as_dict(self) -> dict[str, Any]:
        findings = [asdict(finding) for finding in self.findings]
        return {"findings": findings, "environment": self.environment, "gpus": list(self.gpus)}


def calibration_finding(newest: dict[str, Any] | None, gpu: str = "") -> Finding:
    """`newest`: the device's last line of calibration.jsonl; None if it has none."""
    if newest is None:
        advice = "attnbench doctor --deep measures the peaks that utilization is a share of"
        return Finding("calibration", "none yet", "ok", advice, gpu)
    outcomes = Counter(check["verdict"] for check in newest["checks"])
    counts = ", ".join(f"{number} {outcome}" for outcome, number in outcomes.items())
    found = f"of {newest['utc']}: {counts}"
    if not outcomes["off"]:
        return Finding("calibration", found, gpu=gpu)
    advice = (
        "counters or peaks cannot be trusted here: repeat attnbench doctor --deep with nothing"
        " else on this device"
    )
    return Finding("calibration", found, "note", advice, gpu)


def examine(root: Path) -> Findings:
    """Look at the machine as a run would; `root` has the calibrations. Imports torch."""
    import torch

    from ..devices.environment import collect, fix_threads
    from ..process.command import git_commit
    from .gpu_facts import read_gpus
    from .gpu_findings import gpu_findings
    from .host import host_findings, software_findings, try_torch

    fix_threads()
    torch_gpu = try_torch()
    device = torch_gpu.device or torch.device("cpu")
    environment = collect(device) | {"git": git_commit()}
    chosen = environment["device_uuid"]
    gpus = read_gpus(chosen, root)
    findings = software_findings(torch_gpu, environment, gpus)
    for gpu in gpus.value or ():
        # A bad GPU that no run would use is no reason to distrust runs.
        used = gpu.torch_uses or chosen is None
        findings += [
            one if used or one.grade != "bad" else replace(one, grade="note")
            for one in gpu_findings(gpu)
        ]
    findings += host_findings(environment, device, root)
    return Findings(
        findings=tuple(findings),
        environment=environment,
        gpus=tuple(gpu.as_dict() for gpu in gpus.value or ()),
    )
