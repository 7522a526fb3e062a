"""What `doctor` found, also with --deep, as tables and sentences."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ...reports.data.noise_floor import FEWEST_STARTS
from ...reports.elements import Block, Table, Text, table_of
from ...reports.formatting import ratio_bounds_text, rough_percent_text, share_text
from ...reports.quantity import Cell, Quantity, Unit
from ..devices.calibration_file import FILE as CALIBRATIONS
from . import Findings
from .noise import FILE as SELFCHECKS
from .noise import MAX_FALSE_ALARMS, NoiseFloor, newest_noise

if TYPE_CHECKING:  # they import torch
    from .calibrate import Calibration
    from .peaks import Peak


def of_machine(found: Findings) -> Iterator[Block]:
    """A table for the machine, and one for each GPU."""
    titles = {"": ""} | {finding.gpu: finding.gpu for finding in found.findings}
    used = {gpu["short_uuid"] for gpu in found.gpus if gpu["torch_uses"]}
    for gpu, title in titles.items():
        rows: list[tuple[str, ...]] = []
        for one in (one for one in found.findings if one.gpu == gpu):
            rows.append((one.about, one.grade, one.found))
            if one.advice:  # below the finding: three columns fit 80 characters, four do not
                rows.append(("", "", f"-> {one.advice}"))
        which = ", the one that torch uses" if gpu in used else ""
        yield Table(title=title + which, columns=("about", "", "found"), rows=tuple(rows))


# ---- peaks and counters --------------------------------------------------------------------------


def of_calibration(found: "Calibration", root: Path) -> Iterator[Block]:
    """Peaks, then checks, whose reasons follow as sentences, so that 80 columns are enough."""

    def best(peak: "Peak") -> Cell:
        known = peak.best_per_s is not None
        return Quantity(peak.best_per_s, _unit(peak)) if known else "not measured"

    def specified(peak: "Peak") -> Quantity:
        return Quantity(found.specified.get(peak.name), _unit(peak))

    def share(peak: "Peak") -> Cell:
        found_per_s, stated = peak.best_per_s, specified(peak).value
        return share_text(found_per_s / stated) if found_per_s and stated else ""

    def half_width(peak: "Peak") -> Cell:
        return f"± {100 * peak.typical.half_width_ratio:.1f} %" if peak.block_ms else ""

    def typical(peak: "Peak") -> Quantity:
        per_s = peak.work / (peak.typical.value / 1e3) if peak.block_ms else None
        return Quantity(per_s, _unit(peak))

    yield table_of(
        "",
        found.peaks,
        {
            "peak": _name,
            "best": best,
            "typical": typical,
            "95 %": half_width,
            "specified": specified,
            "share": share,
        },
    )
    checks = [
        (one.name, one.wanted, "" if one.found is None else f"{one.found:.3g}", one.verdict)
        for one in found.checks
    ]
    yield Table(title="", columns=("check", "expected", "found", ""), rows=tuple(checks))
    yield from (Text(text=sentence) for sentence in calibration_sentences(found, root))


def _unit(peak: "Peak") -> Unit:
    return "flops_per_s" if peak.name.endswith("flops_per_s") else "bytes_per_s"


def _name(peak: "Peak") -> str:
    """`gemm bf16` of gemm_bf16_flops_per_s."""
    return peak.name.removesuffix(f"_{_unit(peak)}").replace("_", " ")


def calibration_sentences(found: "Calibration", root: Path) -> Iterator[str]:
    """What may be wrong, and where the numbers are."""
    for check in found.checks:
        if check.verdict != "ok":
            yield f"{check.verdict}: {check.name}: {check.reason}"
    for peak in found.peaks:
        best, stated = peak.best_per_s, found.specified.get(peak.name)
        if peak.clock_mhz is not None:
            yield f"{_name(peak)}: measured at {peak.clock_mhz:.0f} MHz."
        if stated is not None and best is not None and best > stated:
            yield (
                f"{_name(peak)}: {Quantity(best, _unit(peak))} is more than the"
                f" {Quantity(stated, _unit(peak))} that are specified: the device is another one"
                " than its data sheet's, or the clock is wrong."
            )
    if off := sum(check.verdict == "off" for check in found.checks):
        yield (
            f"{off} of {len(found.checks)} checks are off: do not trust utilization from"
            f" {found.device_name or found.device} until they are ok."
        )
    yield f"Appended to {root / CALIBRATIONS}."


# ---- noise ---------------------------------------------------------------------------------------

REPEAT_IDLE = " Repeat it on an idle machine: comparisons would allow for as much."


def of_noise(floor: NoiseFloor, root: Path) -> Iterator[Block]:
    """A row per backend, and what that means."""
    yield table_of(
        "",
        floor.pairs,
        {
            "backend against itself": lambda pair: pair.backend,
            "ratio": lambda pair: f"{pair.ratio.value:.3f}",
            "95 % interval": lambda pair: ratio_bounds_text(
                pair.ratio.low, pair.ratio.high, "{:.3f}".format
            ),
            "told apart": lambda pair: "yes" if pair.told_apart else "no",
        },
    )
    yield from (Text(text=one) for one in noise_sentences(floor, root))


def noise_sentences(floor: NoiseFloor, root: Path) -> Iterator[str]:
    """What the numbers mean for the next measurement here, and where they were written."""
    yield (
        f"Noise floor on {floor.device}: equal backends differ by up to"
        f" {100 * floor.paired_noise_ratio:.1f} % within one process, and by up to"
        f" {100 * floor.run_noise_ratio:.1f} % between processes (95 % of cases)."
    )
    share = floor.clock_overhead_ms / floor.shortest_ms
    yield (
        f"The clock adds {1e6 * floor.clock_overhead_ms:.0f} ns to a call, {100 * share:.3f} % of"
        " the shortest call here."
    )
    if floor.contended_blocks or floor.throttled_blocks:
        yield (
            f"Of {floor.blocks} blocks {floor.contended_blocks} were contended and"
            f" {floor.throttled_blocks} throttled: other work on this machine is part of the floor."
            f"{REPEAT_IDLE if 2 * floor.contended_blocks > floor.blocks else ''}"
        )
    if floor.false_alarms > MAX_FALSE_ALARMS:
        yield (
            f"Equals were told apart in {floor.false_alarms} of {len(floor.pairs)} pairs: do not"
            " trust intervals from here now."
        )
    elif floor.false_alarms:
        yield (
            "One pair of equals was told apart, which happens by chance in 1 check of 7; run it"
            " again."
        )
    else:
        yield "No equals were told apart."
    known = newest_noise(floor, root)
    if known is not None and known.between_runs is None:
        yield (
            f"Start {known.starts} of {FEWEST_STARTS} that tell how much runs differ, which"
            " attnbench compare of two runs must know: repeat it, as far apart as such runs are."
        )
    elif known is not None and known.between_runs is not None:
        yield (
            f"Over {known.starts} starts of this check, runs differ by up to"
            f" {rough_percent_text(known.between_runs.ratio)} (95 % of pairs)."
        )
    yield f"Appended to {root / SELFCHECKS}."
