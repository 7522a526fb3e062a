"""The device over time: one figure per run and kind of sampler, for the utilization section."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from math import inf
from pathlib import Path
from statistics import median
from typing import NamedTuple

from ..data.read import BadRun
from ..data.row_groups import Row
from ..data.run_meta import Meta, run_caption
from ..data.telemetry import telemetry, telemetry_files
from ..elements import Block, Figure, Panel, Series, Table, note
from ..formatting import percent_text, plural
from ..quantity import Number, Unit
from ._probe_tables import reading_text

MOST_POINTS = 400  # per line, breaks included
GAP_PERIODS = 3  # of the sampler: a longer gap breaks the line
# Bits of NVML's clock event mask: software power cap, power brake; thermal slowdowns.
POWER_MASK, HEAT_MASK = 0x4 | 0x80, 0x20 | 0x40
NS_PER_S = 1e9


class Quantity(NamedTuple):
    column: str
    title: str
    unit: Unit = "plain"


QUANTITIES = {
    "gpu": (
        Quantity("sm_clock_mhz", "SM clock (MHz)"),
        Quantity("power_w", "power of the board (W)"),
        Quantity("temperature_c", "temperature (°C)"),
        Quantity("kernel_busy_ratio", "time with a kernel running", "share"),
    ),
    "host": (
        Quantity("cpu_ratio", "all cores busy", "share"),
        Quantity("cpu_clock_mhz", "CPU clock (MHz)"),
        Quantity("resident_bytes", "memory of the workers", "bytes"),
    ),
}


class _Point(NamedTuple):
    """`segment`: the number of the unbroken stretch that it is part of."""

    segment: int
    x: float
    y: float


def traces(
    samples: Sequence[Row], quantity: Quantity, names: Mapping[str, str], period_s: float
) -> Iterator[Series]:
    """One per backend that ran, by `names` (case -> backend), and one for everything else.

    x: seconds since the first sample. The clock goes back if the machine was restarted in between.
    """
    lines: dict[str, list[_Point]] = {}
    segment, last_name, last_x = 0, "", -inf
    for sample in samples:
        if (y := sample[quantity.column]) is None:
            continue
        x = (sample["t_ns"] - samples[0]["t_ns"]) / NS_PER_S
        name = names.get(sample["what"], "other")
        segment += name != last_name or not 0 <= x - last_x <= GAP_PERIODS * period_s
        last_name, last_x = name, x
        lines.setdefault(name, []).append(_Point(segment, x, y))
    return (_trace(name, points) for name, points in lines.items())


def _trace(name: str, points: Sequence[_Point]) -> Series:
    """One line of a timeline, of at most MOST_POINTS points; y is None at its breaks.

    Many points are thinned to the lowest and the highest of each part; in the worst case each of
    them is followed by a break.
    """
    if len(points) > MOST_POINTS // 2:
        size = -(-len(points) // (MOST_POINTS // 4))
        parts = [points[start : start + size] for start in range(0, len(points), size)]
        ends = [end(part, key=lambda point: point.y) for part in parts for end in (min, max)]
        points = sorted(set(ends))
    x: list[float] = []
    y: list[float | None] = []
    for _, some in groupby(points, key=lambda point: point.segment):
        stretch = list(some)
        x += [*(point.x for point in stretch), stretch[-1].x]
        y += [*(point.y for point in stretch), None]
    return Series(backend=name, kind="trace", x=tuple(x), y=tuple(y))


def span(samples: Sequence[Row], quantity: Quantity) -> tuple[float, float, float] | None:
    """The lowest, the median and the highest value; None without values."""
    values = [value for sample in samples if (value := sample[quantity.column]) is not None]
    return (min(values), median(values), max(values)) if values else None


def throttling_text(samples: Sequence[Row]) -> str:
    """How often the GPU's clock was lowered; "" if unknown."""
    masks = [mask for sample in samples if (mask := sample["clock_event_mask"]) is not None]
    if not masks:
        return ""
    power, heat = (sum(bool(mask & bits) for mask in masks) for bits in (POWER_MASK, HEAT_MASK))
    if not power and not heat:
        return f"the clock was lowered for power or heat in none of {len(masks)} samples"
    shares = [
        f"for {what} in {percent_text(count / len(masks))}"
        for count, what in ((power, "power"), (heat, "heat"))
        if count
    ]
    return f"the clock was lowered {' and '.join(shares)} of the samples"


FEWEST_SAMPLES = 2


def figures(rows: Sequence[Row], meta: Meta) -> Iterator[Block]:
    for name, run in meta.items():
        if "path" not in run:
            continue
        caption = run_caption(run, name if len(meta) > 1 else "")
        backends = {row["case"]: row["backend"] for row in rows if row["run"] == name}
        part = "shard" if run.get("merged") else "device"
        for file, whose in telemetry_files(Path(run["path"]), part).items():
            of = " · ".join(filter(None, (caption, whose)))
            yield from _of_file(Path(run["path"]), file, backends, of)


def _of_file(run: Path, file: str, backends: Mapping[str, str], caption: str) -> Iterator[Block]:
    try:
        found = telemetry(run, file)
    except BadRun as error:
        yield note(f"No timeline: {error}.")
        return
    if found.skipped:
        yield note(f"{plural(found.skipped, 'line')} of {file} could not be read; skipped.")
    for kind, quantities in QUANTITIES.items():
        mine = [sample for sample in found.samples if sample["kind"] == kind]
        spans = {one: values for one in quantities if (values := span(mine, one))}
        if found.period_s and len(mine) >= FEWEST_SAMPLES and spans:
            yield _figure(mine, found.period_s, spans, backends, caption)


def _figure(
    samples: Sequence[Row],
    period_s: float,
    spans: Mapping[Quantity, tuple[float, float, float]],
    backends: Mapping[str, str],
    caption: str,
) -> Figure:
    first, extremes = next(iter(spans.items()))
    low, median, high = (reading_text(first.column, value) for value in extremes)
    title = f"{first.title.partition(' (')[0]}: {low} to {high}, median {median}"
    return Figure(
        title="; ".join(filter(None, (title, throttling_text(samples)))),
        caption=(
            f"{caption} · {plural(len(samples), 'sample')}, one every {period_s:g} s, none while"
            " latency was timed (breaks in the lines)"
        ),
        about="Lines of many points show the lowest and the highest value of each part",
        panels=tuple(
            Panel(
                x_label="time since the first sample (s)",
                y_label=quantity.title,
                unit=quantity.unit,
                series=tuple(traces(samples, quantity, backends, period_s)),
                x_scale="linear",
                y_scale="linear",
            )
            for quantity in spans
        ),
        table=Table(
            title="Lowest, median and highest value of all samples",
            columns=("quantity", "lowest", "median", "highest"),
            rows=tuple(
                (
                    of.title.partition(" (")[0],
                    *(Number(reading_text(of.column, value)) for value in values),
                )
                for of, values in spans.items()
            ),
        ),
        same_y=False,
    )
