"""The device over time: one figure per run and kind of sampler, for the utilization section."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """`y` is None at breaks of the line."""

    name: str
    x_s: tuple[float, ...]
    y: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    column: str
    title: str
    unit: Unit


QUANTITIES = {
    "gpu": (
        Quantity(column="sm_clock_mhz", title="SM clock (MHz)", unit="plain"),
        Quantity(column="power_w", title="power of the board (W)", unit="plain"),
        Quantity(column="temperature_c", title="temperature (°C)", unit="plain"),
        Quantity(column="kernel_busy_ratio", title="time with a kernel running", unit="share"),
    ),
    "host": (
        Quantity(column="cpu_ratio", title="all cores busy", unit="share"),
        Quantity(column="cpu_clock_mhz", title="CPU clock (MHz)", unit="plain"),
        Quantity(column="resident_bytes", title="memory of the workers (GiB)", unit="plain"),
    ),
}
GIB = 1 << 30


def kinds(samples: pd.DataFrame) -> list[str]:
    return [kind for kind in QUANTITIES if (samples["kind"] == kind).any()]


def seconds(samples: pd.DataFrame) -> "pd.Series[float]":
    """Since the first sample. The clock goes back if the machine was restarted in between."""
    since_s: pd.Series[float] = (samples["t_ns"] - samples["t_ns"].iloc[0]).astype(
        "float64"
    ) / NS_PER_S
    return since_s


def traces(
    samples: pd.DataFrame, quantity: Quantity, names: Mapping[str, str], period_s: float
) -> Iterator[Trace]:
    """One per backend that ran, by `names` (case -> backend), and one for everything else."""
    known = pd.DataFrame(
        {
            "x": seconds(samples),
            "y": _values(samples, quantity),
            "name": [names.get(str(what), "other") for what in samples["what"]],
        }
    ).dropna()
    known["segment"] = (
        (known["name"] != known["name"].shift())
        | ~(known["x"].diff().between(0, GAP_PERIODS * period_s))
    ).cumsum()
    for name, mine in known.groupby("name", sort=False):
        yield _trace(str(name), mine)


def _trace(name: str, points: pd.DataFrame) -> Trace:
    """One line of a timeline, of at most MOST_POINTS points.

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
    return Trace(name=name, x_s=tuple(x), y=tuple(y))


def _values(samples: pd.DataFrame, quantity: Quantity) -> "pd.Series[float]":
    scale = GIB if quantity.column.endswith("_bytes") else 1
    return samples[quantity.column].astype("float64") / scale


def span(samples: pd.DataFrame, quantity: Quantity) -> tuple[float, float, float] | None:
    """The lowest, the median and the highest value; None without values."""
    values = _values(samples, quantity).dropna()
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


def _of_file(run: Path, file: str, backends: dict[str, str], caption: str) -> Iterator[Block]:
    try:
        samples = telemetry(run, file)
    except BadRun as error:
        yield note(f"No timeline: {error}.")
        return
    if skipped := samples.attrs["skipped"]:
        yield note(f"{plural(skipped, 'line')} of {file} could not be read; skipped.")
    for kind in kinds(samples):
        mine = samples[samples["kind"] == kind]
        quantities = [quantity for quantity in QUANTITIES[kind] if span(mine, quantity)]
        if len(mine) >= FEWEST_SAMPLES and quantities:
            yield _figure(mine, quantities, backends, caption, samples.attrs["period_s"])


def _figure(
    samples: pd.DataFrame,
    quantities: list[Quantity],
    backends: dict[str, str],
    caption: str,
    period_s: float,
) -> Figure:
    panels = tuple(
        Panel(
            x_label="time since the first sample (s)",
            y_label=quantity.title,
            unit=quantity.unit,
            series=tuple(
                Series(backend=trace.name, kind="trace", x=trace.x_s, y=trace.y)
                for trace in traces(samples, quantity, backends, period_s)
            ),
            x_scale="linear",
            y_scale="linear",
        )
        for quantity in quantities
    )
    spans = {quantity: span(samples, quantity) for quantity in quantities}
    return Figure(
        title=_title(samples, quantities),
        caption=(
            f"{caption} · {plural(len(samples), 'sample')}, one every {period_s:g} s, none while"
            " latency was timed (breaks in the lines)"
        ),
        description=(
            f"{len(panels)} panels over time, one quantity each, all axes linear; lines have the"
            " colour of the backend that was running. Lines of many points show the lowest and the"
            " highest value of each part. The table below has the extremes."
        ),
        panels=panels,
        table=Table(
            title="Lowest, median and highest value of all samples",
            columns=("quantity", "lowest", "median", "highest"),
            rows=tuple(
                (quantity.title, *(_cell(value, quantity) for value in span))
                for quantity, span in spans.items()
                if span
            ),
        ),
        same_y=False,
    )


def _title(samples: pd.DataFrame, quantities: list[Quantity]) -> str:
    first = quantities[0]
    low, median, high = (_cell(value, first) for value in span(samples, first) or (0.0, 0.0, 0.0))
    throttling = throttling_text(samples)
    title = f"{first.title}: {low} to {high}, median {median}"
    return f"{title}; {throttling}" if throttling else title


def _cell(value: float, quantity: Quantity) -> str:
    if quantity.unit != "share":
        return number_text(value)
    return f"{100 * value:.3g} %{beyond_text(value)}"
