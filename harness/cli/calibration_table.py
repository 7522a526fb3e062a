"""A calibration in words."""

from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from ..calibration.calibrate import FILE, Calibration
from ..calibration.peaks import Peak
from ..stats import latency_interval
from ..terminal import table

UNITS = {"flops_per_s": "FLOP/s", "bytes_per_s": "B/s"}
PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1.0, ""))


def tables(calibration: Calibration) -> list[Table]:
    """Peaks, then checks. Reasons stand below what they explain, so that both are readable at 80
    characters.
    """
    peaks = [row_of(peak, calibration.specified.get(peak.name)) for peak in calibration.peaks]
    checks = [
        (
            check.name,
            check.wanted,
            "" if check.found is None else f"{check.found:.3g}",
            check.verdict,
        )
        for check in calibration.checks
    ]
    return [
        table(
            "",
            ("peak", "best", "typical", "95 %", "specified", "share"),
            peaks,
            right=("best", "typical", "95 %", "specified", "share"),
        ),
        table("", ("check", "wanted", "found", ""), checks, right=("wanted", "found")),
    ]


def row_of(peak: Peak, stated: float | None) -> tuple[str, ...]:
    name, unit = named(peak.name)
    best = peak.best_per_s
    if best is None:
        return name, "not measured", "", "", rate(stated, unit), ""
    typical = latency_interval([peak.block_ms])
    share = "" if stated is None else f"{best / stated:.0%}"
    return (
        name,
        rate(best, unit),
        rate(peak.work / (typical.value / 1e3), unit),
        f"±{typical.half_width_ratio:.1%}",
        rate(stated, unit),
        share,
    )


def named(name: str) -> tuple[str, str]:
    """gemm_bf16_flops_per_s -> 'gemm bf16', 'FLOP/s'."""
    for ending, unit in UNITS.items():
        if name.endswith(ending):
            return name.removesuffix(f"_{ending}").replace("_", " "), unit
    return name, ""


def rate(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    size, prefix = next(
        ((size, prefix) for size, prefix in PREFIXES if value >= size), PREFIXES[-1]
    )
    return f"{value / size:.3g} {prefix}{unit}"


def sentences(calibration: Calibration, root: Path) -> Iterator[str]:
    """What is behind the verdicts, and where the numbers were put."""
    for check in calibration.checks:
        if check.verdict != "ok":
            yield f"{check.verdict}: {check.name}: {check.reason}"
    off = sum(check.verdict == "off" for check in calibration.checks)
    device = calibration.device_name or calibration.device
    if off:
        yield (
            f"{off} of {len(calibration.checks)} checks are off: do not trust utilization from"
            f" {device} until they are not."
        )
    yield f"Appended to {root / FILE}."
