"""What this machine can measure, and what stands in the way; how far its numbers can be believed.

facts.py reads, rules.py and host_rules.py say what that means, calibrate.py and noise.py measure,
text.py has all of it as printed.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..terminal.live_bar import Steps, busy

if TYPE_CHECKING:
    from ..run.engine import RunOptions
    from .noise import NoiseFloor
    from .rules import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """`gpus`: NVML's facts about each GPU and each instance of one (MIG).

    `calibration`, as in its file, and `noise`: None if they were not measured.
    """

    findings: "tuple[Finding, ...]"
    environment: dict[str, Any]
    gpus: tuple[dict[str, Any], ...]
    calibration: dict[str, Any] | None = None
    noise: "NoiseFloor | None" = None

    @property
    def exit_code(self) -> int:
        """4 if a GPU is there that cannot be used, or runs on it cannot be trusted; 1 if what was
        measured is off.
        """
        if any(finding.grade == "bad" for finding in self.findings):
            return 4
        checks = self.calibration["checks"] if self.calibration else ()
        off = any(check["verdict"] == "off" for check in checks)
        return int(off or (self.noise is not None and self.noise.is_off))

    def as_dict(self) -> dict[str, Any]:
        findings = [asdict(finding) for finding in self.findings]
        found = {"findings": findings, "environment": self.environment, "gpus": list(self.gpus)}
        if self.calibration is not None and self.noise is not None:
            found |= {"calibration": self.calibration, "selfcheck": self.noise.as_dict()}
        return found


def examine(root: Path, *, quiet: bool = True) -> Examined:
    """Look at the machine as a run would; `root` has the calibrations. Imports torch."""
    with busy("looking at this machine", quiet=quiet):
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


def measure(
    seen: Examined,
    device: str,
    root: Path,
    options: Callable[[], AbstractContextManager["RunOptions"]],
    *,
    wait: bool,
    quiet: bool,
) -> Examined:
    """Also what runs are judged by, appended to files in `root`: --deep. Not where a run could not
    be trusted. `options`: of a run. Raises Refusal.
    """
    if seen.exit_code:
        return seen
    with Steps(quiet=quiet) as steps:
        steps.step("starting")
        from .calibrate import calibrate
        from .noise import noise_known, selfcheck

        calibration = calibrate(device, root, wait=wait, step=steps.step)

    def check(start: int) -> "NoiseFloor":
        with options() as asked:
            return selfcheck(device, root, start, asked)

    return replace(seen, calibration=calibration, noise=noise_known(root, check))
