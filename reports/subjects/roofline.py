"""The roofline: what each case achieves, and what the device can reach at its intensity."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...harness.stats.intervals import Interval
from ..data.decode import is_decode
from ..data.peaks import Place, peaks, places
from ..data.row_groups import (
    Group,
    Row,
    axis_text,
    by,
    case_key,
    groups,
    label,
    problem,
    varying_axes,
)
from ..data.run_meta import Meta, device_name
from ..elements import Block, Figure, Panel, Series, Table, note, table_of
from ..formatting import bandwidth_text, beyond_whole, number_text, rate_text, share_text
from ..quantity import Cell, Quantity
from . import Subject
from ._over import MOST_PANELS, common_caption, joined, not_drawn, panel, with_ends

TITLE = "Roofline"
SECTION = "more"
APART = True
ORDER = 46
MOST_ROWS = 200
ROOF = "attainable"
RATE = "achieved_{}rate"
FROM_MEMORY = "from memory alone"
WHY_BEYOND = (
    "More than 100 % of the measured peaks is impossible from memory alone where memory is the"
    " limit: the data then came from a cache, which is faster than the copy that measures"
    " bandwidth. Where compute is the limit it is impossible: the work was not done, or the clock"
    " was higher than when the peaks were measured."
)
BY_BANDWIDTH = (
    "Decode steps that memory limits are in Decode and memory bandwidth: their share of the roof is"
    " their share of bandwidth."
)
NO_PEAKS = (
    "No peaks were measured on this device for this dtype, so there is no share of a peak."
    " attnbench doctor --deep measures them, and later runs have them."
)


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    timed = places(rows, meta)
    found = [place for place in timed if not _is_bandwidth(place)]
    if not found:
        return Subject(
            lacking=BY_BANDWIDTH if timed else "No timed case has its minimal traffic in bytes."
        )
    if all(place.peaks is None for place in found):
        return Subject(lacking=NO_PEAKS)
    left = (note(BY_BANDWIDTH),) if len(found) < len(timed) else ()
    return Subject(blocks=(*left, *_blocks(found, meta)))


def _blocks(found: list[Place], meta: Meta) -> Iterator[Block]:
    yield note(
        "Intensity is the work over the bytes that any backend must move, the highest possible. A"
        " backend that writes its scores moves many more bytes, so its true place is further left:"
        ' the limit "memory" is certain, "compute" the best case.'
    )
    yield from _peaks(found, meta)
    if any(place.peaks is None for place in found):
        yield note(NO_PEAKS)
    if any(place.share is not None and _is_beyond(place.share) for place in found):
        yield note(WHY_BEYOND)
    by_case = {case_key(place.row): place for place in found}
    drawn = [
        (group, [by_case[case_key(row)] for row in group.rows])
        for group in groups([place.row for place in found], "seq_len")
        if by_case[case_key(group.rows[0])].peaks is not None
    ]
    axes = varying_axes([problem(place.row) for place in found]) or ["seq_len"]
    yield _figure(drawn[:MOST_PANELS], _table(found, axes), meta)
    yield from not_drawn([group for group, _ in drawn[MOST_PANELS:]], "; the table has them")


def _is_bandwidth(place: Place) -> bool:
    """Whether the share is that of memory bandwidth, which its own section has."""
    return is_decode(place.row) and place.bound != "compute"


def _peaks(found: list[Place], meta: Meta) -> Iterator[Block]:
    """One sentence for each device and dtype with known peaks."""
    for run, device, dtype in dict.fromkeys(
        (place.row["run"], place.row["device"], place.row["dtype"]) for place in found
    ):
        known = peaks(meta[run], dtype)
        if known is not None:
            yield note(
                f"{device_name(meta[run], device)}, {dtype}: measured peaks of"
                f" {rate_text(known.flops_per_s)} and {bandwidth_text(known.bytes_per_s)}; below"
                f" {number_text(known.ridge)} FLOP per byte memory is the limit."
            )


def _figure(drawn: Sequence[tuple[Group, list[Place]]], table: Table, meta: Meta) -> Figure:
    return Figure(
        title=joined([(group, _finding(points)) for group, points in drawn]),
        caption=common_caption([group for group, _ in drawn], meta),
        about=(
            "The dotted line is the roof: bandwidth times intensity up to the ridge, then the peak"
            " of matrix products, both as measured"
        ),
        panels=tuple(_panel(group, points) for group, points in drawn),
        table=table,
    )


def _panel(group: Group, points: list[Place]) -> Panel:
    known = points[0].peaks
    assert known is not None  # what has none is not drawn
    xs = sorted({place.intensity for place in points})
    # Beyond both ends, so that both parts of the roof and the ridge are visible.
    roof = sorted({*xs, min(xs[0], known.ridge) / 2, known.ridge, max(xs[-1], known.ridge) * 2})
    attainable = tuple(map(known.attainable, roof))
    rows = [
        with_ends(place.row | {"intensity": place.intensity}, RATE, place.achieved_flops_per_s)
        for place in points
    ]
    measured = panel(
        replace(group, rows=rows),
        "intensity",
        RATE,
        x_label="highest possible intensity, FLOP per byte",
        y_label="achieved",
        unit="flops_per_s",
    )
    top = Series(backend=ROOF, kind="formula", x=tuple(roof), y=attainable)
    return replace(measured, series=(top, *measured.series))


def _finding(points: list[Place]) -> str:
    """The best and the worst backend at the longest N with the most cases."""
    by_n = by(points, lambda place: int(place.row["seq_len"]))
    n = max(by_n, key=lambda n: (len(by_n[n]), n))
    shares = sorted(
        ((place.share.value, place.row["backend"]) for place in by_n[n] if place.share is not None),
        reverse=True,
    )
    (high, best), (low, worst) = shares[0], shares[-1]
    bound = by_n[n][0].bound
    where = f"at {axis_text('seq_len', n)} (limit at best: {bound})"
    rest = f", {worst} {share_text(low, _of(bound))}" if len(shares) > 1 else ""
    return f"{best} reaches {share_text(high, _of(bound))} of what is attainable {where}{rest}"


def _of(bound: str) -> str:
    return FROM_MEMORY if bound == "memory" else ""


def _is_beyond(share: Interval) -> bool:
    return any(beyond_whole(value) for value in (share.value, share.low, share.high))


def _table(points: list[Place], axes: list[str]) -> Table:
    return table_of(
        "Every timed case and its roof",
        points,
        {
            "problem": lambda place: label(problem(place.row), axes),
            "backend": lambda place: place.row["backend"],
            "achieved": lambda place: Quantity(place.achieved_flops_per_s.value, "flops_per_s"),
            "FLOP per byte, at most": lambda place: place.intensity,
            "limit": lambda place: place.bound if place.share else "",
            "attainable": _attainable,
            "share of attainable": _share,
        },
        optional=("limit", "attainable", "share of attainable"),
        folded=True,
        most=MOST_ROWS,
    )


def _attainable(place: Place) -> Cell:
    if place.peaks is None:
        return ""
    return Quantity(place.peaks.attainable(place.intensity), "flops_per_s")


def _share(place: Place) -> Cell:
    """`98.0 % (95.0 to 103); above 100 % is impossible`."""
    share, of = place.share, _of(place.bound)
    if share is None:
        return ""
    beyond = f"; above 100 % is impossible{f' {of}' if of else ''}" if _is_beyond(share) else ""
    return Quantity(share.value, "share", share.low, share.high, beyond)
