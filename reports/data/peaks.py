"""The device's peaks, as `attnbench doctor --calibrate` measured them before the run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...harness.files.printable import visible
from .run_meta import finite_number

MOST_CHARACTERS = 200
COPY = "copy_bytes_per_s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """Of matrix products in one dtype, and of copying memory."""

    flops_per_s: float
    bytes_per_s: float

    @property
    def ridge(self) -> float:
        """FLOPs per byte above which arithmetic is the limit."""
        return self.flops_per_s / self.bytes_per_s

    def attainable(self, intensity: float) -> float:
        return min(self.flops_per_s, intensity * self.bytes_per_s)


def peaks(run: Mapping[str, Any], dtype: str) -> Peaks | None:
    """Of this run's device and dtype; None if they were not measured."""
    flops_per_s = _measured(run, f"gemm_{dtype}_flops_per_s")
    bytes_per_s = memory_bytes_per_s(run)
    if flops_per_s is None or bytes_per_s is None:
        return None
    return Peaks(flops_per_s=flops_per_s, bytes_per_s=bytes_per_s)


def memory_bytes_per_s(run: Mapping[str, Any]) -> float | None:
    """The bandwidth of this run's device: of a copy, bytes read and bytes written."""
    return _measured(run, COPY)


def is_calibrated(run: Mapping[str, Any]) -> bool:
    calibration = run.get("calibration")
    return isinstance(calibration, dict) and isinstance(calibration.get("peaks"), dict)


def memory_doubt(run: Mapping[str, Any]) -> str:
    """Why calibration itself doubts that bandwidth; "" if it does not."""
    checks = run["calibration"].get("checks") if is_calibrated(run) else None
    for check in checks if isinstance(checks, list) else ():
        if not isinstance(check, dict) or check.get("verdict") != "off":
            continue
        if str(check.get("name")).startswith(COPY):
            reason = visible(str(check.get("reason")))[:MOST_CHARACTERS]
            return f"calibration doubts the copy that it timed ({reason})"
    return ""


def _measured(run: Mapping[str, Any], name: str) -> float | None:
    """None also for what is no rate: the file may be anyone's."""
    if not is_calibrated(run):
        return None
    found = finite_number(run["calibration"]["peaks"], name)
    return found if found is not None and found > 0 else None
