"""The figure of the device over time, one per run and kind of sampler, for the section on what the
device did.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pandas as pd

from ..analysis import timeline
from ..data.run_meta import Meta, device_name, scenario_name
from ..data.read import BadRun
from ..data.row_groups import Row
from ..data.telemetry import TELEMETRY, telemetry
from ..elements import Block, Figure, Panel, Series, Table, Text, Unit
from ..formatting import number_text, plural

FEWEST_SAMPLES = 2


def figures(rows: list[Row], meta: Meta) -> Iterator[Block]:
    for name, run in meta.items():
        if "path" not in run:
            continue
        try:
            samples = telemetry(Path(run["path"]))
        except BadRun as error:
            yield Text(text=f"No timeline: {error}.", kind="note")
            continue
        if skipped := samples.attrs["skipped"]:
            yield Text(
                text=(
                    f"{plural(skipped, 'line')} of {TELEMETRY} could not be read and are left out."
                ),
                kind="note",
            )
        named = f" · {name}" if len(meta) > 1 else ""
        caption = f"{device_name(run)} · scenario {scenario_name(run)}{named}"
        backends = {row["case"]: row["backend"] for row in rows if row["run"] == name}
        for kind in timeline.kinds(samples):
            mine = samples[samples["kind"] == kind]
            quantities = [
                quantity for quantity in timeline.QUANTITIES[kind] if timeline.span(mine, quantity)
            ]
            if len(mine) >= FEWEST_SAMPLES and quantities:
                yield _figure(mine, quantities, backends, caption, samples.attrs["period_s"])


def _figure(
    samples: pd.DataFrame,
    quantities: list[timeline.Quantity],
    backends: dict[str, str],
    caption: str,
    period_s: float,
) -> Figure:
    panels = tuple(
        Panel(
            x_label="time since the first sample (s)",
            y_label=quantity.title,
            unit=cast(Unit, quantity.unit),
            series=tuple(
                Series(backend=trace.name, kind="trace", x=trace.x_s, y=trace.y)
                for trace in timeline.traces(samples, quantity, backends, period_s)
            ),
            x_scale="linear",
            y_scale="linear",
        )
        for quantity in quantities
    )
    rows = [
        (quantity, span) for quantity in quantities if (span := timeline.span(samples, quantity))
    ]
    return Figure(
        title=_title(samples, quantities),
        caption=(
            f"{caption} · {plural(len(samples), 'sample')}, one every {period_s:g} s, none while"
            " latency was timed; there lines break"
        ),
        description=(
            f"{len(panels)} panels over time, one quantity each, all axes linear; the line has the"
            " colour of the backend that was running. A line of many points shows the lowest and"
            " the highest of each stretch. The table below has the extremes."
        ),
        panels=panels,
        table=Table(
            title="Lowest, middle and highest value of all samples",
            columns=("quantity", "lowest", "median", "highest"),
            rows=tuple(
                (quantity.title, *(_cell(value, quantity) for value in span))
                for quantity, span in rows
            ),
        ),
        same_y=False,
    )


def _title(samples: pd.DataFrame, quantities: list[timeline.Quantity]) -> str:
    held = timeline.held_back(samples)
    first = quantities[0]
    low, middle, high = timeline.span(samples, first) or (0.0, 0.0, 0.0)
    said = (
        f"{first.title}: {_cell(low, first)} to {_cell(high, first)}, in the middle"
        f" {_cell(middle, first)}"
    )
    return f"{said}; {held}" if held else said


def _cell(value: float, quantity: timeline.Quantity) -> str:
    return f"{100 * value:.3g} %" if quantity.unit == "share" else number_text(value)
