"""A finding: one fact about this machine, its grade, and what can be done about it."""

from collections import Counter
from dataclasses import asdict, dataclass
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
        advice = "attnbench doctor --calibrate measures the peaks that utilization is a share of"
        return Finding("calibration", "none yet", "ok", advice, gpu)
    outcomes = Counter(check["verdict"] for check in newest["checks"])
    counts = ", ".join(f"{number} {outcome}" for outcome, number in outcomes.items())
    found = f"of {newest['utc']}: {counts}"
    if not outcomes["off"]:
        return Finding("calibration", found, gpu=gpu)
    advice = (
        "counters or peaks cannot be trusted here: repeat attnbench doctor --calibrate with nothing"
        " else on this device"
    )
    return Finding("calibration", found, "note", advice, gpu)
