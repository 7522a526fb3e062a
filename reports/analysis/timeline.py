"""The device over time, as the sampler saw it: a line per quantity and backend that was running,
thin enough for a page.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from ..formatting import number_text

MOST_POINTS = 400  # per line, breaks included
GAP_PERIODS = 3  # of the sampler: a longer silence breaks the line, for nothing was looked at
POWER_MASK, HEAT_MASK = (
    0x4 | 0x80,
    0x20 | 0x40,
)  # bits of NVML's clock event mask: software power cap, power brake; thermal slowdowns
NS_PER_S = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """`y` is None where the line is broken."""

    name: str
    x_s: tuple[float, ...]
    y: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    column: str
    title: str
    unit: str  # of blocks.Unit


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
    """Since the first sample of all. A machine that started anew in between is told by a clock that
    goes back.
    """
    since_s: pd.Series[float] = (samples["t_ns"] - samples["t_ns"].iloc[0]).astype(
        "float64"
    ) / NS_PER_S
    return since_s


def traces(
    samples: pd.DataFrame, quantity: Quantity, names: Mapping[str, str], period_s: float
) -> Iterator[Trace]:
    """One for each backend that ran, by `names` (case to backend), and one for the rest."""
    values = samples[quantity.column].astype("float64") / (
        GIB if quantity.column.endswith("_bytes") else 1
    )
    known = pd.DataFrame(
        {
            "x": seconds(samples),
            "y": values,
            "name": [names.get(str(what), "other") for what in samples["what"]],
        }
    ).dropna()
    known["stretch"] = (
        (known["name"] != known["name"].shift())
        | ~(known["x"].diff().between(0, GAP_PERIODS * period_s))
    ).cumsum()
    for name, mine in known.groupby("name", sort=False):
        yield _trace(str(name), mine)


def _trace(name: str, points: pd.DataFrame) -> Trace:
    """Where there are many points, the lowest and the highest of so many that follow each other; at
    worst each is followed by a break.
    """
    if len(points) > MOST_POINTS // 2:
        part = pd.Series(range(len(points)), index=points.index) // -(
            -len(points) // (MOST_POINTS // 4)
        )
        alike = points.groupby(part)["y"]
        points = points.loc[sorted({*alike.idxmin(), *alike.idxmax()})]
    x: list[float] = []
    y: list[float | None] = []
    for _, stretch in points.groupby("stretch"):
        x += [*stretch["x"], float(stretch["x"].iloc[-1])]
        y += [*stretch["y"], None]
    return Trace(name=name, x_s=tuple(x), y=tuple(y))


def span(samples: pd.DataFrame, quantity: Quantity) -> tuple[float, float, float] | None:
    """The lowest, the median and the highest value; None where there is none."""
    values = samples[quantity.column].astype("float64").dropna() / (
        GIB if quantity.column.endswith("_bytes") else 1
    )
    return (
        (float(values.min()), float(values.median()), float(values.max())) if len(values) else None
    )


def held_back(samples: pd.DataFrame) -> str:
    """How often the GPU's clock was lowered, in words; "" where nobody knows."""
    masks = [int(mask) for mask in samples["clock_event_mask"].dropna()]
    if not masks:
        return ""
    power, heat = (sum(bool(mask & bits) for mask in masks) for bits in (POWER_MASK, HEAT_MASK))
    if not power and not heat:
        return f"in none of {len(masks)} samples was the clock held down by power or heat"
    share = [
        f"{number_text(100 * count / len(masks))} % by {what}"
        for count, what in ((power, "power"), (heat, "heat"))
        if count
    ]
    return f"the clock was held down in {' and '.join(share)} of the samples"
