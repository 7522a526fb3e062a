"""The device over time: one figure per run and kind of sampler, for the utilization section."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from ..data.read import BadRun
from ..data.row_groups import Row
from ..data.run_meta import Meta, run_caption
from ..data.telemetry import telemetry, telemetry_files
from ..elements import Block, Figure, Panel, Series, Table, note
from ..formatting import beyond_text, number_text, percent_text, plural
from ..quantity import Unit

MOST_POINTS = 400  # per line, breaks included
GAP_PERIODS = 3  # of the sampler: a longer gap breaks the line
# Bits of NVML's clock event mask: software power cap, power brake; thermal slowdowns.
POWER_MASK, HEAT_MASK = 0x4 | 0x80, 0x20 | 0x40
NS_PER_S = 1e9


class Quantity(NamedTuple):
    column: str
    title: str
    unit: Unit = "plain"

    def of(self, samples: pd.DataFrame) -> "pd.Series[float]":
        """In the unit of the title."""
        scale = GIB if self.column.endswith("_bytes") else 1
        return samples[self.column].astype("float64") / scale


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
        Quantity("resident_bytes", "memory of the workers (GiB)"),
    ),
}
GIB = 1 << 30


def traces(
    samples: pd.DataFrame, quantity: Quantity, names: Mapping[str, str], period_s: float
) -> Iterator[Series]:
    """One per backend that ran, by `names` (case -> backend), and one for everything else.

    x: seconds since the first sample. The clock goes back if the machine was restarted in between.
    """
    since_ns = samples["t_ns"] - samples["t_ns"].iloc[0]
    known = pd.DataFrame(
        {
            "x": since_ns.astype("float64") / NS_PER_S,
            "y": quantity.of(samples),
            "name": [names.get(str(what), "other") for what in samples["what"]],
        }
    ).dropna()
    known["segment"] = (
        (known["name"] != known["name"].shift())
        | ~(known["x"].diff().between(0, GAP_PERIODS * period_s))
    ).cumsum()
    for name, mine in known.groupby("name", sort=False):
        yield _trace(str(name), mine)


def _trace(name: str, points: pd.DataFrame) -> Series:
    """One line of a timeline, of at most MOST_POINTS points; y is None at its breaks.

    Many points are thinned to the lowest and the highest of each part; in the worst case each of
    them is followed by a break.
    """
    if len(points) > MOST_POINTS // 2:
        size = -(-len(points) // (MOST_POINTS // 4))
        parts = points.groupby(pd.Series(range(len(points)), index=points.index) // size)["y"]
        points = points.loc[sorted({*parts.idxmin(), *parts.idxmax()})]
    x: list[float] = []
    y: list[float | None] = []
    for _, segment in points.groupby("segment"):
        x += [*segment["x"], float(segment["x"].iloc[-1])]
        y += [*segment["y"], None]
    return Series(backend=name, kind="trace", x=tuple(x), y=tuple(y))


def span(samples: pd.DataFrame, quantity: Quantity) -> tuple[float, float, float] | None:
    """The lowest, the median and the highest value; None without values."""
    values = quantity.of(samples).dropna()
    if not len(values):
        return None
    return float(values.min()), float(values.median()), float(values.max())


def throttling_text(samples: pd.DataFrame) -> str:
    """How often the GPU's clock was lowered; "" if unknown."""
    masks = [int(mask) for mask in samples["clock_event_mask"].dropna()]
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
        samples = telemetry(run, file)
    except BadRun as error:
        yield note(f"No timeline: {error}.")
        return
    if skipped := samples.attrs["skipped"]:
        yield note(f"{plural(skipped, 'line')} of {file} could not be read; skipped.")
    for kind, quantities in QUANTITIES.items():
        mine = samples[samples["kind"] == kind]
        spans = {one: found for one in quantities if (found := span(mine, one))}
        if len(mine) >= FEWEST_SAMPLES and spans:
            yield _figure(mine, spans, backends, caption)


def _figure(
    samples: pd.DataFrame,
    spans: Mapping[Quantity, tuple[float, float, float]],
    backends: Mapping[str, str],
    caption: str,
) -> Figure:
    period_s = samples.attrs["period_s"]
    first, extremes = next(iter(spans.items()))
    low, median, high = (_cell(value, first) for value in extremes)
    title = f"{first.title}: {low} to {high}, median {median}"
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
                (quantity.title, *(_cell(value, quantity) for value in values))
                for quantity, values in spans.items()
            ),
        ),
        same_y=False,
    )


def _cell(value: float, quantity: Quantity) -> str:
    if quantity.unit != "share":
        return number_text(value)
    return f"{100 * value:.3g} %{beyond_text(value)}"
