"""What doctor found, also with --deep, as tables and sentences."""

from collections.abc import Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any

from ...reports.data.noise_floor import FEWEST_STARTS
from ...reports.elements import Block, Table, Text, table_of
from ...reports.formatting import ratio_bounds_text, rough_percent_text, share_text
from ...reports.quantity import Quantity, Unit
from ..devices.calibration_file import FILE as CALIBRATIONS
from ..stats.intervals import latency_interval
from . import Examined
from .noise import FILE as SELFCHECKS
from .noise import MAX_FALSE_ALARMS, NoiseFloor, newest_noise


def blocks(seen: Examined, root: Path) -> Iterator[Block]:
    """`root`: the folder that has calibrations and checks of noise."""
    yield from of_machine(seen)
    if seen.calibration is not None:
        yield Text(text="")
        yield from of_calibration(seen.calibration, root)
    if seen.noise is not None:
        yield Text(text="")
        yield from of_noise(seen.noise, root)


def of_machine(seen: Examined) -> Iterator[Table]:
    """A table for the machine, and one for each GPU."""
    titles = {"": ""} | {finding.gpu: finding.gpu for finding in seen.findings}
    used = {gpu["short_uuid"] for gpu in seen.gpus if gpu["torch_uses"]}
    for gpu, title in titles.items():
        rows: list[tuple[str, ...]] = []
        for one in (one for one in seen.findings if one.gpu == gpu):
            rows.append((one.about, one.grade, one.found))
            if one.advice:  # below the finding: three columns fit 80 characters, four do not
                rows.append(("", "", f"-> {one.advice}"))
        which = ", the one that torch uses" if gpu in used else ""
        yield Table(title=title + which, columns=("about", "", "found"), rows=tuple(rows))


# ---- peaks and counters --------------------------------------------------------------------------


def of_calibration(line: Mapping[str, Any], root: Path) -> Iterator[Block]:
    """Peaks, then checks, whose reasons follow as sentences, so that 80 columns are enough."""
    columns = ("peak", "best", "typical", "95 %", "specified", "share")
    rows = tuple(peak_row(line, name) for name in line["peaks"])
    yield Table(title="", columns=columns, rows=rows)
    yield table_of(
        "",
        line["checks"],
        {
            "check": itemgetter("name"),
            "expected": itemgetter("wanted"),
            "found": lambda one: "" if one["found"] is None else f"{one['found']:.3g}",
            "": itemgetter("verdict"),
        },
    )
    yield from (Text(text=sentence) for sentence in calibration_sentences(line, root))


def peak_row(line: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    unit, word = named(name)
    best, stated = line["peaks"][name], line["specified"][name]
    if name not in line["samples"]:
        return word, "not measured", Quantity(None, unit), "", Quantity(stated, unit), ""
    sample = line["samples"][name]
    typical = latency_interval([sample["block_ms"]])
    return (
        word,
        Quantity(best, unit),
        Quantity(sample["work"] / (typical.value / 1e3), unit),
        f"± {100 * typical.half_width_ratio:.1f} %",
        Quantity(stated, unit),
        share_text(best / stated) if stated else "",
    )


def named(peak: str) -> tuple[Unit, str]:
    """Of gemm_bf16_flops_per_s its unit and `gemm bf16`."""
    unit: Unit = "flops_per_s" if peak.endswith("flops_per_s") else "bytes_per_s"
    return unit, peak.removesuffix(f"_{unit}").replace("_", " ")


def calibration_sentences(line: Mapping[str, Any], root: Path) -> Iterator[str]:
    """What may be wrong, and where the numbers are."""
    checks = line["checks"]
    for check in checks:
        if check["verdict"] != "ok":
            yield f"{check['verdict']}: {check['name']}: {check['reason']}"
    for name, best in line["peaks"].items():
        (unit, word), stated = named(name), line["specified"][name]
        if name in line["clocks_mhz"]:
            yield f"{word}: measured at {line['clocks_mhz'][name]:.0f} MHz."
        if stated is not None and best is not None and best > stated:
            yield (
                f"{word}: {Quantity(best, unit)} measured, {Quantity(stated, unit)} specified: the"
                " device differs from its data sheet, or the clock is wrong."
            )
    if off := sum(check["verdict"] == "off" for check in checks):
        yield (
            f"{off} of {len(checks)} checks are off: do not trust utilization from"
            f" {line['device_name'] or line['device']} until they are ok."
        )
    yield f"Appended to {root / CALIBRATIONS}."


# ---- noise ---------------------------------------------------------------------------------------

REPEAT_IDLE = " Repeat this on an idle machine, since later comparisons use this floor."


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
            "different": lambda pair: "yes" if pair.told_apart else "no",
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
            f"Other work on this machine is part of the floor: of {floor.blocks} blocks"
            f" {floor.contended_blocks} were contended and {floor.throttled_blocks} throttled."
            f"{REPEAT_IDLE if 2 * floor.contended_blocks > floor.blocks else ''}"
        )
    if floor.false_alarms > MAX_FALSE_ALARMS:
        yield (
            f"Intervals cannot be trusted here now: {floor.false_alarms} of {len(floor.pairs)}"
            " equal pairs appeared different. Repeat this on an idle machine."
        )
    elif floor.false_alarms:
        yield (
            "One equal pair appeared different, which happens by chance in 1 of 7 checks; run it"
            " again."
        )
    else:
        yield "No equal pair appeared different."
    known = newest_noise(floor, root)
    if known is not None and known.between_runs is None:
        yield (
            f"Run-to-run noise needs {FEWEST_STARTS} starts; this was start {known.starts}. Repeat"
            " it at intervals like those between the runs that you compare."
        )
    elif known is not None and known.between_runs is not None:
        yield (
            f"Over {known.starts} starts of this check, runs differ by up to"
            f" {rough_percent_text(known.between_runs.ratio)} (95 % of pairs)."
        )
    yield f"Appended to {root / SELFCHECKS}."
