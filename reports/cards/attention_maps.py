"""A small layer at one length: what a call costs, and what its heads attend to."""

from collections.abc import Sequence

import pandas as pd

from ..analysis.attention_maps import attended, finding, head_maps
from ..analysis.speedup import baseline
from ..data.row_groups import Row, axis_text, backends, case_key, records
from ..data.run_meta import Meta
from ..elements import Card, Table
from ..formatting import bytes_text, in_brackets, list_text, measured_bounds_text, time_text

ORDER = 12


def card(frame: pd.DataFrame, meta: Meta) -> Card | None:
    """Of the first run that has maps, and times of a layer at a single length."""
    rows = records(frame)
    for name, run in meta.items():
        mine = [row for row in rows if row["run"] == name]
        timed = [row for row in mine if row.get("latency_ms") is not None]
        layers = [row for row in timed if row["scope"] == "layer"]
        maps = head_maps(run)
        if maps and layers and len({row["seq_len"] for row in mine}) == 1:
            lead = baseline(run, layers) or layers[0]["backend"]
            costs = [row for row in timed if row["backend"] == lead]
            texts = [f"{_scope(row)} {_time(row)}" for row in costs[:2]]
            at = axis_text("seq_len", layers[0]["seq_len"])
            tokens = len(maps[0]["weight_rows"])
            heads = ", ".join(f"head {one['head']} to {attended(one)}" for one in maps)
            return Card(
                name="attention_maps",
                title="The layer and its heads",
                sentence=(
                    f"At {at} {lead} takes {list_text(texts)}."
                    f" {finding(maps, numbers=True)}, of {tokens}."
                ),
                picture=_table(timed),
                subtitle=f"a call at {at}",
                note=f"Tokens that a query attends to on average: {heads}. Nothing is trained.",
            )
    return None


def _scope(row: Row) -> str:
    return f"for the {row['scope']}"


def _time(row: Row) -> str:
    """`21.5 μs (20.1 to 23.0 μs)`."""
    low, high = row.get("latency_low_ms"), row.get("latency_high_ms")
    known = in_brackets(measured_bounds_text(low, high, time_text))
    return f"{time_text(row['latency_ms'])}{known or ' (no interval)'}"


def _table(timed: Sequence[Row]) -> Table:
    shown = [row for name in backends(timed) for row in timed if row["backend"] == name]
    return Table(
        title="Time and peak bytes of a call",
        columns=("backend", "scope", "time (95 % interval)", "peak bytes"),
        rows=tuple(
            (row["backend"], row["scope"], _time(row), bytes_text(row.get("peak_bytes")))
            for row in shown
        ),
        cases={(place, 0): case_key(row) for place, row in enumerate(shown)},
    )
