"""What this machine can measure, and what stands in the way; how far its numbers can be believed.

facts.py reads, rules.py and host_rules.py say what that means, calibrate.py and noise.py measure,
text.py has all of it as printed.
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .rules import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """`gpus`: NVML's facts about each GPU and each instance of one (MIG)."""

    findings: "tuple[Finding, ...]"
    environment: dict[str, Any]
    gpus: tuple[dict[str, Any], ...]

    @property
    def exit_code(self) -> int:
        """4 if a GPU is there that cannot be used, or runs on it cannot be trusted."""
        return 4 if any(finding.grade == "bad" for finding in self.findings) else 0

    def as_dict(self) -> dict[str, Any]:
        findings = [asdict(finding) for finding in self.findings]
        return {"findings": findings, "environment": self.environment, "gpus": list(self.gpus)}


def examine(root: Path) -> Examined:
    """Look at the machine as a run would; `root` has the calibrations. Imports torch."""
    from .facts import read_machine
    from .host_rules import HOST_RULES, SOFTWARE_RULES
    from .rules import CALIBRATION, GPU_RULES, LOST, findings, is_lost

    environment, host, gpus = read_machine(root)
    found = [*findings(SOFTWARE_RULES, host)]
    for gpu in gpus:
        rules = (*GPU_RULES, *(CALIBRATION if gpu["torch_uses"] else ()))
        for one in findings(LOST if is_lost(gpu) else rules, gpu):
            # A bad GPU that no run would use is no reason to distrust runs.
            used = gpu["torch_uses"] or environment["device_uuid"] is None
            found.append(one if used or one.grade != "bad" else replace(one, grade="note"))
        del gpu["calibration"]
    found += findings((*HOST_RULES, *(CALIBRATION if host["device"] == "cpu" else ())), host)
    return Examined(findings=tuple(found), environment=environment, gpus=tuple(gpus))
