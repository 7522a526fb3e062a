"""Calibrate a device: check its counters under known loads, measure its peaks, keep both."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any

import torch

from ..files.errors import EnvironmentUnmet
from ..machine.calibration_file import SCHEMA, append, check_writable
from ..machine.cpu import cpu_name
from ..machine.environment import fix_threads, pick_device
from ..machine.nvml import nvml_device
from ..measure.physical_floor import specified
from ..process.device_lock import device_lock
from .calibration_checks import LOADS, WINDOW_S, Check, Expectation, check_counters
from .peaks import KINDS, Peak, Sizes, measure

STEADY_RATIO = 0.15
"""Half the width of a rate's interval: beyond it other work ran, and the best of the repeats may be
no peak.
"""
HIGHEST_SHARE = 1.1  # of the data sheet's peak: some boards exceed its boost clock by up to 8 %
LOWEST_SHARE = 0.3  # a GPU at its power limit still reaches more


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """`specified`: the data sheet's peaks, {} if unknown. `device_uuid` is None on a CPU."""

    utc: str
    device: str
    device_name: str | None
    device_uuid: str | None
    torch: str
    peaks: Sequence[Peak]
    specified: dict[str, float]
    checks: Sequence[Check]

    @property
    def exit_code(self) -> int:
        return 1 if any(check.verdict == "off" for check in self.checks) else 0

    def as_line(self) -> dict[str, Any]:
        """A line of calibration.jsonl.

        Peaks are the best of the repeats; `samples` has all repeats in ms, [block][call].
        """
        return {
            "schema": SCHEMA,
            "utc": self.utc,
            "device": self.device,
            "device_name": self.device_name,
            "device_uuid": self.device_uuid,
            "torch": self.torch,
            "peaks": {peak.name: peak.best_per_s for peak in self.peaks},
            "specified": {peak.name: self.specified.get(peak.name) for peak in self.peaks},
            "checks": [asdict(check) for check in self.checks],
            "samples": {
                peak.name: {"work": peak.work, "block_ms": peak.block_ms}
                for peak in self.peaks
                if peak.block_ms
            },
        }


def calibrate(
    requested: str,
    root: Path,
    *,
    wait: bool,
    sizes: Sizes | None = None,
    window_s: float = WINDOW_S,
    step: Callable[[str, int], object] = lambda what, total: None,
) -> Calibration:
    """Measure, check, and append to `root`/calibration.jsonl.

    `step` is called with the name of each step when it begins, and how many there are.
    Raises Refusal if there is no such device, it is in use, or the file cannot be written.
    """
    fix_threads()
    device, why = pick_device(requested)
    if why:
        raise EnvironmentUnmet(
            f"no {requested} device: {why}; calibrate with --device cpu, or see attnbench doctor"
        )
    check_writable(root)
    gpu = nvml_device(device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else cpu_name()
    total = len(LOADS[device.type]) + len(KINDS[device.type]) + 1  # copying

    def begins(what: str) -> None:
        step(what, total)

    with device_lock(gpu.uuid or "cpu", wait=wait, check=lambda: None):
        try:
            checks = check_counters(device, gpu, window_s, begins)
        except torch.OutOfMemoryError:
            raise EnvironmentUnmet(
                f"{name} has too little free memory to be calibrated; see attnbench doctor"
            ) from None
        peaks = measure(device, sizes, begins)
    stated = specified(name)
    calibration = Calibration(
        utc=datetime.now(UTC).isoformat(timespec="seconds"),
        device=device.type,
        device_name=name,
        device_uuid=gpu.uuid,
        torch=torch.__version__,
        peaks=peaks,
        specified=stated,
        checks=[*checks, *(one for p in peaks for one in check_peak(p, stated.get(p.name)))],
    )
    append(root, calibration.as_line())
    return calibration


def check_peak(peak: Peak, stated: float | None) -> list[Check]:
    """Whether the repeats agree and, with a data sheet, whether the measured peak is possible."""
    best = peak.best_per_s
    if best is None:
        name = f"{peak.name}: repeats"
        return [Check(name=name, wanted="any", verdict="not measured", reason=peak.reason)]
    disturbed = "repeats differ: other work runs on this device, or its clock changes"
    steady = Expectation(peak.name, "half-width of repeats", 0, STEADY_RATIO, disturbed)
    half = peak.typical.half_width_ratio
    checks = [steady.check(half if isfinite(half) else None, "too few repeats")]
    if stated is not None:
        cause = (
            "beyond the data sheet: the work or the clock is wrong"
            if best > stated
            else "far below the data sheet: held back, or a slow kernel"
        )
        share = "share of specified"
        possible = Expectation(peak.name, share, LOWEST_SHARE, HIGHEST_SHARE, cause)
        checks.append(possible.check(best / stated))
    return checks
