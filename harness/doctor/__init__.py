"""What this machine can measure, and what stands in the way: a finding on each.

gpu_facts.py reads NVML, gpu_findings.py grades it; software.py and host.py cover the rest. Nothing
here measures a backend, and a driver that refuses raises nothing.
"""

from dataclasses import replace
from pathlib import Path

from .finding import Finding, Findings, Grade


def examine(root: Path) -> Findings:
    """Look at the machine as a run would; `root` has the calibrations. Imports torch."""
    import torch

    from ..machine.environment import collect, fix_threads
    from .gpu_facts import read_gpus
    from .gpu_findings import gpu_findings
    from .host import host_findings
    from .software import software_findings, try_torch

    fix_threads()
    torch_gpu = try_torch()
    device = torch_gpu.device or torch.device("cpu")
    environment = collect(device)
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


__all__ = ["Finding", "Findings", "Grade", "examine"]
