"""From which share of padding on packing sequences is faster, and at what bytes."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import starmap
from math import isfinite
from typing import NamedTuple

from ..data.processor_time import time_of
from ..data.row_groups import (
    AXES,
    SUMS,
    Group,
    Row,
    axis_text,
    by,
    case_key,
    family,
    groups,
    is_timed,
)
from ..data.run_meta import Meta, caption
from ..elements import Card, Figure, Panel, note, table_of
from ..formatting import bytes_text, capital, list_text, more_below, paragraph, rough_percent_text
from ..judging.over import paired
from ..judging.ratio import Ratio
from ..quantity import Quantity
from . import Subject
from ._crossovers import Crossover
from ._over import MOST_PANELS, joined, panel, with_ends
from ._race import fastest_of

TITLE = "Padding or packing"
SECTION = "asked"
ORDER = 12
NEEDS = ("padding_ratio", "latency_ms")
PADDED = "padded"  # the backend, and its variants
RATIO = "padded_{}ratio"
BATCH = [axis for axis in AXES if axis not in SUMS]


class Batch(NamedTuple):
    """A ragged batch: the fastest padded call over the fastest packed one, by time and peak (NaN
    without both).
    """

    padded: Row
    packed: Row
    time: Ratio
    bytes_ratio: float

    @property
    def share(self) -> float:
        return float(self.padded["padding_ratio"])


Batches = Sequence[Batch]
"""Of problems that differ in their lengths alone, from the least padding."""


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = comparisons(rows)
    if not found:
        return Subject(lacking="No ragged batch was timed both padded and packed.")
    shown = found[:MOST_PANELS]
    picture = Figure(
        title=joined([(group, finding(batches)) for group, batches in shown]),
        caption=caption(shown[0][0].problem, meta),
        panels=tuple(_panel(group, batches) for group, batches in shown),
        table=table_of(
            "Padded and packed",
            [(group, one) for group, batches in found for one in batches],
            {
                "lengths": lambda of: axis_text("lengths", of[1].padded["lengths"]),
                "problem": lambda of: of[0].label,
                "padding": lambda of: Quantity(of[1].share, "share"),
                "padded": lambda of: time_of(of[1].padded),
                "packed": lambda of: time_of(of[1].packed),
                "by": lambda of: str(of[1].packed["backend"]),
                "padded over packed": lambda of: of[1].time.marked,
                "peak, padded": lambda of: Quantity(of[1].padded.get("peak_bytes"), "bytes"),
                "packed ": lambda of: Quantity(of[1].packed.get("peak_bytes"), "bytes"),
            },
            case=lambda of: case_key(of[1].padded),
            optional=("problem",),
        ),
    )
    how = note(
        "Padded: every sequence is filled up to the longest, under a mask, and what was filled in"
        " is taken out again, all in the call. Packed: sequences lie one after the other, and"
        " nothing is filled in. The share of padding is that of a padded batch's tokens. Of each"
        " batch the fastest padded call is compared with the fastest packed one."
    )
    return Subject(
        card=Card(
            title=TITLE,
            sentence=f"{capital(picture.title)}.",
            picture=picture,
            subtitle="time over that of the padded call, over the share of padding",
            note=paragraph(more_below(len(found) - len(shown))),
        ),
        blocks=(how,),
    )


def comparisons(rows: Sequence[Row]) -> list[tuple[Group, Batches]]:
    """Problems that differ in more than their lengths, each with its batches; those of sequences
    that have cached keys apart. What has most batches is first.
    """
    ragged = [row for row in rows if row.get("lengths") and is_timed(row)]
    kinds = by(ragged, lambda row: family(row["backend"]) == PADDED)
    padded, packed = (fastest_of(kinds.get(kind, ()), BATCH) for kind in (True, False))
    pairs = paired(padded, packed, BATCH, "peak_bytes_ratio")
    batches = sorted(starmap(Batch, pairs), key=lambda one: one.share)
    found = [
        (replace(group, label=", ".join(filter(None, (words, group.label))), rows=[*some]), mine)
        for group in groups(ragged, "lengths")
        for words, some in by(group.rows, _cached).items()
        if (mine := [one for one in batches if any(row is one.padded for row in some)])
    ]
    return sorted(found, key=lambda of: -len(of[1]))


def _cached(row: Row) -> str:
    """Where sequences have more keys than queries."""
    return "cached sequences" if row["kv_seq_len"] != row["seq_len"] else ""


def finding(batches: Batches) -> str:
    """`packing is faster than padding from 25 % padding on: 1.3 times (1.2 to 1.4) there, ...`."""
    turn = Crossover(
        ratios=dict(enumerate(one.time for one in batches)),
        above=True,
        ignored=[at for at, one in enumerate(batches) if one.time.disturbed],
    )
    start, last = turn.start, batches[-1]
    at = [f"at {rough_percent_text(one.share)} {one.time.text}" for one in batches]
    if start is None:
        shares = f"up to {rough_percent_text(last.share)} padding"
        return f"packing was not shown to be faster than padding {shares}: {list_text(at)}"
    first = batches[start]
    where = f"from {rough_percent_text(first.share)} padding on"
    if len(batches) == 1:
        where = f"at {rough_percent_text(first.share)} padding"
    elif start == 0:
        where = f"at every share of padding from {rough_percent_text(first.share)} on"
    parts = [first.time.text, *([at[-1]] if last is not first else [])]
    text = f"packing is faster than padding {where}: {list_text(parts)}"
    text += f" (below: {list_text(at[:start])})" if start else ""
    if isfinite(last.bytes_ratio):
        sizes = [bytes_text(row["peak_bytes"]) for row in (last.packed, last.padded)]
        text += f"; {last.packed['backend']} needs {sizes[0]}, padding {sizes[1]}"
    return text


def _panel(group: Group, batches: Batches) -> Panel:
    """Every backend's time over that of the fastest padded one, by the share of padding."""
    rows = sorted(group.rows, key=lambda row: float(row["padding_ratio"]))
    drawn = [
        with_ends(row, RATIO, time)
        for row, padded, time in paired(rows, [one.padded for one in batches], BATCH)
        if row is not padded
    ]
    found = panel(
        replace(group, rows=drawn),
        "padding_ratio",
        RATIO,
        x_label="share of padding",
        y_label="time over padded",
        unit="ratio",
        line=(1, "the fastest padded"),
    )
    return replace(found, x_scale="linear")
