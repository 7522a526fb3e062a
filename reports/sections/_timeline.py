"""The device over time: one figure per run and kind of sampler, for the utilization section."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from ..analysis import timeline
from ..data.read import BadRun
from ..data.row_groups import Row
from ..data.run_meta import Meta, run_caption
from ..data.telemetry import telemetry, telemetry_files
from ..elements import Block, Figure, Panel, Series, Table, note
from ..formatting import beyond_text, number_text, plural

FEWEST_SAMPLES = 2


def figures(rows: list[Row], meta: Meta) -> Iterator[Block]:
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
            unit=quantity.unit,
            series=tuple(
                Series(backend=trace.name, kind="trace", x=trace.x_s, y=trace.y)
                for trace in timeline.traces(samples, quantity, backends, period_s)
            ),
            x_scale="linear",
            y_scale="linear",
        )
        for quantity in quantities
    )
    spans = {quantity: timeline.span(samples, quantity) for quantity in quantities}
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


def _title(samples: pd.DataFrame, quantities: list[timeline.Quantity]) -> str:
    first = quantities[0]
    low, median, high = (
        _cell(value, first) for value in timeline.span(samples, first) or (0.0, 0.0, 0.0)
    )
    throttling = timeline.throttling_text(samples)
    title = f"{first.title}: {low} to {high}, median {median}"
    return f"{title}; {throttling}" if throttling else title


def _cell(value: float, quantity: timeline.Quantity) -> str:
    if quantity.unit != "share":
        return number_text(value)
    return f"{100 * value:.3g} %{beyond_text(value)}"
