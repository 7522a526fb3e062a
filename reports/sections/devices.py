"""Do devices of one kind take the same time? The same cases, measured on several on purpose."""

from collections.abc import Iterator

import pandas as pd

from ..comparison.devices import MARGIN_RATIO, Copies, copies_of
from ..comparison.devices_text import (
    finding,
    interval_text,
    problem_text,
    ratio_text,
    repeats_text,
    spread_text,
)
from ..data.row_groups import case_key, records
from ..data.run_meta import Meta
from ..elements import Block, Table, Text, note
from ..formatting import percent_text, time_text

TITLE = "Between devices"
ORDER = 16
NEEDS = ("replica", "block_ms")
ALL_COPIES = True
MOST_TABLE_ROWS = 200


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    found = copies_of(records(frame), meta)
    if not found:
        yield note(
            "Every case was measured once. attnbench run measures each on two devices if"
            " --replicate 2 is given, with --shard."
        )
        return
    for one in found:
        yield from _of_run(one, f" of {one.run}" if len(meta) > 1 else "")
    yield note(
        "The other sections show the first copy of each case. What devices differ by includes their"
        " hosts, and whatever else ran there."
    )


def _of_run(found: Copies, of: str) -> Iterator[Block]:
    pair = found.spread
    if pair:
        yield Text(text=f"Device-to-device spread{of}: {spread_text(pair)}.")
    yield Text(text=f"{finding(found)}{of}.")
    if found.between:
        yield Text(
            text=f"95 % of times on two of the {len(found.devices)} devices are within"
            f" {percent_text(found.between.ratio)} of each other{of}."
        )
    yield from (Text(text=f"{repeats_text(one)}{of}.") for one in found.repeats)
    if pair:
        yield note(
            "The spread is the time on the slower device over that on the faster, less 1: the"
            " geometric mean over the cases of a group, then over groups, with an interval by"
            " Student t over groups. Groups are measured at different times, so the interval has"
            f" what a device differs by from one time to another. Up to"
            f" {100 * MARGIN_RATIO:g} % counts as the same."
        )
        if len(found.pairs) > 1:
            yield note(
                f"The interval allows for the choice among {len(found.pairs)} pairs of devices"
                " (Bonferroni)."
            )
    yield from _devices(found, of)
    yield from _pairs(found, of)
    yield from _cases(found, of)


def _devices(found: Copies, of: str) -> Iterator[Block]:
    if found.devices:
        yield Table(
            title=f"Timed copies by device{of}",
            columns=("device", "cases", "host", "UUID", "name"),
            rows=tuple(
                (one.label, str(count), one.host, one.uuid, one.name)
                for one, count in [*found.devices.items()][:MOST_TABLE_ROWS]
            ),
        )


def _pairs(found: Copies, of: str) -> Iterator[Block]:
    if len(found.pairs) < 2:
        return
    yield Table(
        title=f"Every pair of devices with a group in common, the largest difference first{of}",
        columns=("slower", "faster", "groups", "slower over faster"),
        rows=tuple(
            (one.new.label, one.base.label, str(one.groups), interval_text(one.ratio))
            for one in found.pairs[:MOST_TABLE_ROWS]
        ),
    )


def _cases(found: Copies, of: str) -> Iterator[Block]:
    """Each case on the two devices that differ most."""
    pair, drawn = found.spread, found.cases[:MOST_TABLE_ROWS]
    if pair is None or not drawn:
        return
    yield Table(
        title=f"{pair.new.label} over {pair.base.label}, case by case{of}",
        columns=("backend", "problem", pair.base.label, pair.new.label, "ratio"),
        rows=tuple(
            (
                one.new["backend"],
                problem_text(one, found),
                time_text(one.base["latency_ms"]),
                time_text(one.new["latency_ms"]),
                ratio_text(one.ratio),
            )
            for one in drawn
        ),
        cases={
            (line, column): case_key(row)
            for line, one in enumerate(drawn)
            for column, row in ((2, one.base), (3, one.new))
        },
    )
    if more := len(found.cases) - len(drawn):
        yield note(f"{more} more cases differ less; attnbench export has them all.")
    yield note(
        "Intervals of single cases have what processes differ by, not how a device's speed drifts"
        " between the two measurements."
    )
