"""What this machine can measure, and what stands in the way, in a line each.

trial.py tries torch on the GPU, gpu_facts.py asks NVML about every GPU, processes.py whose work
runs there; software.py, gpu_findings.py and host.py grade what was found. Nothing here measures a
backend, and nothing raises because of a driver that refuses.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from ..terminal import table
from .finding import Finding, Grade


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """`gpus` are NVML's facts, one entry for each GPU and each instance of one (MIG)."""

    findings: tuple[Finding, ...]
    environment: dict[str, Any]
    gpus: tuple[dict[str, Any], ...] = ()

    @property
    def exit_code(self) -> int:
        """4 where a GPU run could not be trusted, or a GPU is there that cannot be used."""
        return 4 if any(finding.grade == "bad" for finding in self.findings) else 0

    def as_dict(self) -> dict[str, Any]:
        findings = [asdict(finding) for finding in self.findings]
        return {"findings": findings, "environment": self.environment, "gpus": list(self.gpus)}

    def tables(self) -> list[Table]:
        """The machine's, and one for each GPU."""
        titles = {"": ""} | {finding.gpu: finding.gpu for finding in self.findings}
        used = {gpu["short_uuid"] for gpu in self.gpus if gpu["torch_uses"]}
        return [
            drawn(
                title + (", the one that torch uses" if gpu in used else ""),
                [f for f in self.findings if f.gpu == gpu],
            )
            for gpu, title in titles.items()
        ]


def drawn(title: str, findings: Sequence[Finding]) -> Table:
    """Advice stands below what it is for: three columns are readable at 80 characters, four are
    not.
    """
    rows = [
        (one.about, one.grade, f"{one.found}\n-> {one.advice}" if one.advice else one.found)
        for one in findings
    ]
    return table(title, ("about", "", "found"), rows)


def examine(root: Path) -> Findings:
    """Look at the machine as a run would; calibrations stand in `root`. Imports torch."""
    import torch

    from ..environment import collect, fix_threads
    from ..nvml import identity
    from .gpu_facts import look
    from .gpu_findings import findings_of
    from .host import host
    from .software import software
    from .trial import try_torch

    fix_threads()
    trial = try_torch()
    device = trial.device or torch.device("cpu")
    facts = collect(device)
    chosen = identity(device).uuid
    seen = look(chosen, root)
    found = software(trial, facts, seen)
    for gpu in seen.value or ():
        # Trouble of a GPU that no run would use is no reason to distrust a run.
        matters = gpu.torch_uses or chosen is None
        found += [
            one if matters or one.grade != "bad" else replace(one, grade="note")
            for one in findings_of(gpu)
        ]
    found += host(facts, device, root)
    return Findings(
        findings=tuple(found),
        environment=facts,
        gpus=tuple(gpu.as_dict() for gpu in seen.value or ()),
    )


__all__ = ["Finding", "Findings", "Grade", "examine"]
