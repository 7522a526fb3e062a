"""The finding on what `doctor --calibrate` has left for a device."""

from collections import Counter
from typing import Any

from .finding import Finding


def calibration(found: dict[str, Any] | None) -> Finding:
    """`found` is the newest line of calibration.jsonl for the device; None where there is none."""
    if found is None:
        return Finding(
            about="calibration",
            found="none yet",
            advice="attnbench doctor --calibrate: its peaks are what utilization is a share of",
        )
    verdicts = Counter(check["verdict"] for check in found["checks"])
    words = ", ".join(f"{number} {verdict}" for verdict, number in verdicts.items())
    if verdicts["off"]:
        advice = (
            "counters or peaks cannot be trusted here: repeat attnbench doctor --calibrate, alone"
            " on this device"
        )
        return Finding(
            about="calibration", found=f"of {found['utc']}: {words}", grade="note", advice=advice
        )
    return Finding(about="calibration", found=f"of {found['utc']}: {words}")
