"""A calibration for the terminal."""

from collections.abc import Iterator
from pathlib import Path

from ...reports.elements import Block, Table, Text
from ..doctor.calibrate import Calibration
from ..doctor.peaks import Peak
from ..machine.calibration_file import FILE

PEAKS = ("peak", "best", "typical", "95 %", "specified", "share")
UNITS = {"flops_per_s": "FLOP/s", "bytes_per_s": "B/s"}
PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1.0, ""))


def blocks(calibration: Calibration, root: Path) -> Iterator[Block]:
    """Peaks, then checks, whose reasons follow as sentences, so that 80 columns are enough."""
    peaks = [row_of(peak, calibration.specified.get(peak.name)) for peak in calibration.peaks]
    yield Table(title="", columns=PEAKS, rows=tuple(peaks))
    checks = [
        (one.name, one.wanted, "" if one.found is None else f"{one.found:.3g}", one.verdict)
        for one in calibration.checks
    ]
    yield Table(title="", columns=("check", "expected", "found", ""), rows=tuple(checks))
    yield from (Text(text=sentence) for sentence in sentences(calibration, root))


def row_of(peak: Peak, stated: float | None) -> tuple[str, ...]:
    name, unit = named(peak.name)
    best = peak.best_per_s
    if best is None:
        return name, "not measured", "", "", rate(stated, unit), ""
    typical = peak.typical
    share = "" if stated is None else f"{100 * best / stated:.0f} %"
    if stated is not None and best > stated:
        share += " (impossible)"
    return (
        name,
        rate(best, unit),
        rate(peak.work / (typical.value / 1e3), unit),
        f"± {100 * typical.half_width_ratio:.1f} %",
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
    """What may be wrong, and where the numbers are."""
    for check in calibration.checks:
        if check.verdict != "ok":
            yield f"{check.verdict}: {check.name}: {check.reason}"
    for peak in calibration.peaks:
        stated = calibration.specified.get(peak.name)
        if stated is not None and peak.best_per_s is not None and peak.best_per_s > stated:
            name, unit = named(peak.name)
            yield (
                f"{name}: {rate(peak.best_per_s, unit)} is more than the {rate(stated, unit)} that"
                " are specified: the device is another one than its data sheet's, or the clock is"
                " wrong."
            )
    off = sum(check.verdict == "off" for check in calibration.checks)
    device = calibration.device_name or calibration.device
    if off:
        yield (
            f"{off} of {len(calibration.checks)} checks are off: do not trust utilization from"
            f" {device} until they are ok."
        )
    yield f"Appended to {root / FILE}."
