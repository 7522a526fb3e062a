"""At which share of padding packing sequences is faster, and at what bytes."""

from collections.abc import Sequence
from dataclasses import replace

from ..data.row_groups import AXES, SUMS, Group, Row, axis_text, by, family, groups, is_timed
from ..data.run_meta import Meta, caption
from ..elements import Card, Figure, Panel
from ..formatting import bytes_text, capital, list_text, more_below, paragraph, rough_percent_text
from ..judging.over import paired
from ..quantity import Quantity
from . import Subject
from ._over import MOST_PANELS, joined, panel, with_ends
from ._pairs import Cells, Crossover, Pair, pair_table, pairs_of
from ._race import fastest_of

TITLE = "Padding or packing"
SECTION = "asked"
ORDER = 12
PADDED = "padded"  # the backend, and its variants
RATIO = "padded_{}ratio"
BATCH = [axis for axis in AXES if axis not in SUMS]
HOW = (
    "Padded: every sequence is filled up to the longest, under a mask. The fastest call of either"
    " kind counts. A batch `4q2k_32q1s1k` has 4 sequences of 2\u202f048 tokens, and 32 of 1 token"
    " with 1\u202f024 keys."
)
Batches = Sequence[Pair]
"""Padded over packed, of problems that differ in their lengths alone, from the least padding."""


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = comparisons(rows)
    if not found:
        return Subject(lacking="No ragged batch was timed both padded and packed.")
    shown = found[:MOST_PANELS]
    more: Cells = {
        "lengths": lambda one: axis_text("lengths", one.row["lengths"]),
        "padding": lambda one: Quantity(share(one), "share"),
    }
    every = [one for _, batches in found for one in batches]
    picture = Figure(
        title=joined([(group, finding(batches)) for group, batches in shown]),
        caption=caption(shown[0][0].problem, meta),
        panels=tuple(_panel(group, batches) for group, batches in shown),
        table=pair_table("Padded and packed", every, "padded", "packed", more, ("lengths", *SUMS)),
    )
    card = Card(
        title=TITLE,
        sentence=f"{capital(found[0][0].prefixed(finding(found[0][1])))}.",
        picture=picture,
        subtitle="time over that of the padded call, over the share of padding",
        note=paragraph(HOW, more_below(len(found) - len(shown))),
    )
    return Subject(card=card)


def share(one: Pair) -> float:
    return float(one.row["padding_ratio"])


def comparisons(rows: Sequence[Row]) -> list[tuple[Group, Batches]]:
    """Problems that differ in more than their lengths, each with its batches; those of sequences
    that have cached keys apart. What has most batches is first.
    """
    ragged = [row for row in rows if row.get("lengths") and is_timed(row)]
    kinds = by(ragged, lambda row: family(row["backend"]) == PADDED)
    padded, packed = (fastest_of(kinds.get(kind, ()), BATCH) for kind in (True, False))
    batches = sorted(pairs_of(padded, packed, BATCH), key=share)
    found = [
        (replace(group, label=", ".join(filter(None, (words, group.label))), rows=[*some]), mine)
        for group in groups(ragged, "lengths")
        for words, some in by(group.rows, _cached).items()
        if (mine := [one for one in batches if any(row is one.row for row in some)])
    ]
    return sorted(found, key=lambda of: -len(of[1]))


def _cached(row: Row) -> str:
    """Where sequences have more keys than queries."""
    return "cached sequences" if row["kv_seq_len"] != row["seq_len"] else ""


def finding(batches: Batches) -> str:
    """`packing is faster at 25 % padding and more: a padded call takes 0.90 times (0.88 to 0.93) at
    0 % and 1.3 times (1.2 to 1.4) at 25 % its time, and at 25 % 4 MiB against 3 MiB`.
    """
    turn = Crossover(
        ratios=dict(enumerate(one.time for one in batches)),
        above=True,
        ignored=[at for at, one in enumerate(batches) if one.time.disturbed],
    )
    shares, last = [rough_percent_text(share(one)) for one in batches], batches[-1]
    where = "was not shown to be faster"
    if turn.start is not None:
        more = " and more" * (last is not batches[turn.start])
        where = f"is faster at {shares[turn.start]} padding{more}"
        if turn.start == 0 and len(shares) > 1:
            where = "is faster at every share of padding"
    ends = [(batches[0], shares[0]), (last, shares[-1])][: len(batches)]
    times = list_text([f"{one.time.text} at {at}" for one, at in ends])
    text = f"packing {where}: a padded call takes {times} its time"
    if last.ratio("peak_bytes") > 0:
        sizes = [bytes_text(row["peak_bytes"]) for row in (last.row, last.base)]
        text += f", and at {shares[-1]} {sizes[0]} against {sizes[1]}"
    return text


def _panel(group: Group, batches: Batches) -> Panel:
    """Every backend's time over that of the fastest padded one, by the share of padding."""
    rows = sorted(group.rows, key=lambda row: float(row["padding_ratio"]))
    drawn = [
        with_ends(row, RATIO, time)
        for row, padded, time in paired(rows, [one.row for one in batches], BATCH)
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
