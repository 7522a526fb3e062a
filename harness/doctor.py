"""What this machine can measure, and what stands in the way, in a line each."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from rich.table import Table

from .show import table

Grade = Literal["ok", "note", "bad"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fact with its grade and, where something can be done, advice."""

    about: str
    found: str
    grade: Grade = "ok"
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    findings: tuple[Finding, ...]
    environment: dict[str, Any]

    @property
    def exit_code(self) -> int:
        """4 where a GPU run could not be trusted, or a GPU is there that cannot be used."""
        return 4 if any(finding.grade == "bad" for finding in self.findings) else 0

    def as_dict(self) -> dict[str, Any]:
        return {"findings": [asdict(finding) for finding in self.findings], "environment": self.environment}

    def table(self) -> Table:
        rows = [(finding.about, finding.found, finding.grade, finding.advice) for finding in self.findings]
        return table("", ("about", "found", "", "advice"), rows)


def examine() -> Findings:
    """Look at the machine as a run would. Imports torch."""
    import torch

    from .budget import available_bytes
    from .environment import collect, pick_device

    device, _ = pick_device("auto")
    facts = collect(device)
    findings = [*(_gpu(facts) if device.type == "cuda" else _no_gpu()), *_host(facts)]
    free = available_bytes(torch.device(device))
    findings.append(Finding(about="memory", found=f"{free / 2**30:.1f} GiB free on {device.type}; runs take up to 70 % of it by default"))
    return Findings(findings=tuple(findings), environment=facts)


def _gpu(facts: dict[str, Any]) -> list[Finding]:
    found = f"{facts['device_name']}, compute capability {facts['compute_capability']}, {facts['device_memory_bytes'] / 2**30:.0f} GiB"
    findings = [
        Finding(about="gpu", found=found),
        Finding(
            about="cuda",
            found=f"torch {facts['torch']}, CUDA {facts['cuda']}, cuDNN {facts['cudnn']} from {facts['cudnn_path'] or 'not loaded yet'}",
        ),
    ]
    if facts["driver"] is None:
        findings.append(Finding(about="nvml", found="does not answer", grade="note", advice="latency and memory are measured all the same"))
    else:
        findings.append(Finding(about="driver", found=facts["driver"]))
    return findings


def _no_gpu() -> list[Finding]:
    """No device for torch: fine on a machine without one, not fine where the kernel driver shows one."""
    import torch

    if Path("/proc/driver/nvidia/version").exists() or Path("/dev/nvidiactl").exists():
        build = "a CPU build of torch" if torch.version.cuda is None else f"torch for CUDA {torch.version.cuda}"
        advice = (
            "install a CUDA build of torch that fits the driver"
            if torch.version.cuda is None
            else "compare nvidia-smi's CUDA version with torch's"
        )
        return [Finding(about="gpu", found=f"an NVIDIA driver is loaded, but {build} finds no device", grade="bad", advice=advice)]
    return [
        Finding(
            about="gpu", found="none", advice="latency by the host's clock and exact memory are measured on the CPU; SM utilization is not"
        )
    ]


def _host(facts: dict[str, Any]) -> list[Finding]:
    threads, cores = facts["threads"], facts["cores"]
    same = threads == cores
    found = f"{facts['cpu'] or 'unknown'}, {cores} usable cores, torch uses {threads} threads ({facts['cpu_capability']})"
    advice = "" if same else "set OMP_NUM_THREADS, so that runs on other machines can be compared"
    findings = [Finding(about="cpu", found=found, grade="ok" if same else "note", advice=advice)]
    load = _load_average()
    if load is not None and load > 0.5 * cores:
        findings.append(
            Finding(
                about="load",
                found=f"{load:.1f} on {cores} cores",
                grade="note",
                advice="other processes will disturb CPU latencies; wait for them",
            )
        )
    if facts["allocator"]:
        settings = ", ".join(f"{name}={value}" for name, value in facts["allocator"].items())
        findings.append(
            Finding(about="settings", found=settings, grade="note", advice="these environment variables change numbers and are recorded")
        )
    return findings


def _load_average() -> float | None:
    try:
        return float(Path("/proc/loadavg").read_text().split()[0])
    except (OSError, ValueError):
        return None
