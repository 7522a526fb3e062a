"""The roofline: what each case achieves, and what the device can reach at its intensity."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ...harness.stats.intervals import Interval
from ..data.peaks import Place, is_decode, places
from ..data.row_groups import (
    Group,
    Row,
    case_key,
    groups,
    label,
    problem,
    varying_axes,
)
from ..data.run_meta import Meta, device_name
from ..elements import Figure, Panel, Series, Table, note, table_of
from ..formatting import bandwidth_text, beyond_whole, number_text, plural, rate_text
from ..quantity import Cell, Quantity
from . import Subject
from ._over import MOST_PANELS, common_caption, panel, with_ends

TITLE = "Roofline"
SECTION = "more"
APART = True
ORDER = 46
MOST_ROWS = 200
ROOF = "attainable"
RATE = "achieved_{}rate"
OF = {"memory": "from memory alone", "compute": "", "": ""}
INTENSITY = (
    "Intensity is the work over the bytes that any backend must move, the highest possible: a"
    " backend"
    ' that writes its scores is further left, so the limit "memory" is certain, "compute" the best'
    " case."
)
WHY_BEYOND = (
    "More than 100 % is impossible from memory alone where memory is the limit: the data came from"
    " a cache. Where compute is the limit it is impossible: the work was not done, or the clock was"
    " higher than when the peaks were measured."
)
BY_BANDWIDTH = "Decode steps that memory limits are in Decode and memory bandwidth."
NO_PEAKS = (
    "No peaks were measured on this device for this dtype, so there is no share of a peak:"
    " `attnbench doctor --deep` measures them for later runs."
)


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    timed = places(rows, meta)
    found = [one for one in timed if not (is_decode(one.row) and one.bound != "compute")]
    if not found:
        return Subject(
            lacking=BY_BANDWIDTH if timed else "No timed case has its minimal traffic in bytes."
        )
    known = [one for one in found if one.peaks is not None]
    if not known:
        return Subject(lacking=NO_PEAKS)
    notes = {
        BY_BANDWIDTH: len(found) < len(timed),
        INTENSITY: True,
        **dict.fromkeys(_peaks(known, meta), True),
        NO_PEAKS: len(known) < len(found),
        WHY_BEYOND: any(_is_beyond(one.share) for one in found),
    }
    by_case = {case_key(one.row): one for one in known}
    drawn = groups([one.row for one in known], "seq_len")
    points = [[by_case[case_key(row)] for row in group.rows] for group in drawn]
    shown = list(zip(drawn, points, strict=True))[:MOST_PANELS]
    figure = Figure(
        title="Achieved FLOP/s under the roof of the device",
        caption=common_caption([group for group, _ in shown], meta),
        about=(
            "The dotted line is the roof: bandwidth times intensity up to the ridge, then the peak"
            " of matrix products, both as measured"
        ),
        panels=tuple(_panel(group, some) for group, some in shown),
        table=_table(found),
    )
    texts = [note(text) for text, so in notes.items() if so]
    left = len(drawn) - len(shown)
    more = [note(f"{plural(left, 'more problem')} not drawn; the table has them.")] if left else []
    return Subject(blocks=(*texts, figure, *more))


def _peaks(known: list[Place], meta: Meta) -> Iterator[str]:
    """One sentence for each device and dtype."""
    for one in known:
        if (of := one.peaks) is not None:
            yield (
                f"{device_name(meta[one.row['run']], one.row['device'])}, {one.row['dtype']}:"
                f" measured peaks of {rate_text(of.flops_per_s)} and"
                f" {bandwidth_text(of.bytes_per_s)}; memory is the limit below"
                f" {number_text(of.ridge)} FLOP per byte."
            )


def _panel(group: Group, points: list[Place]) -> Panel:
    known = points[0].peaks
    assert known is not None  # what has none is not drawn
    xs = sorted({one.intensity for one in points})
    # Beyond both ends, so that both parts of the roof and the ridge are visible.
    roof = sorted({*xs, min(xs[0], known.ridge) / 2, known.ridge, max(xs[-1], known.ridge) * 2})
    rows = [
        with_ends(one.row | {"intensity": one.intensity}, RATE, one.achieved_flops_per_s)
        for one in points
    ]
    measured = panel(
        replace(group, rows=rows),
        "intensity",
        RATE,
        x_label="highest possible intensity, FLOP per byte",
        y_label="achieved",
        unit="flops_per_s",
    )
    y = tuple(map(known.attainable, roof))
    top = Series(backend=ROOF, kind="formula", x=tuple(roof), y=y)
    return replace(measured, series=(top, *measured.series))


def _is_beyond(share: Interval | None) -> bool:
    return share is not None and any(map(beyond_whole, (share.value, share.low, share.high)))


def _table(points: list[Place]) -> Table:
    axes = varying_axes([problem(one.row) for one in points]) or ["seq_len"]
    columns: dict[str, Callable[[Place], Cell]] = {
        "problem": lambda one: label(problem(one.row), axes),
        "backend": lambda one: one.row["backend"],
        "achieved": lambda one: Quantity(one.achieved_flops_per_s.value, "flops_per_s"),
        "FLOP per byte, at most": lambda one: one.intensity,
        "limit": lambda one: one.bound,
        "attainable": lambda one: (
            Quantity(one.peaks.attainable(one.intensity), "flops_per_s") if one.peaks else ""
        ),
        "share of attainable": _share,
    }
    title = "Every timed case and its roof"
    return table_of(title, points, columns, folded=True, most=MOST_ROWS)


def _share(one: Place) -> Cell:
    """`98.0 % (95.0 to 103); above 100 % is impossible`."""
    share, of = one.share, OF[one.bound]
    if share is None:
        return ""
    beyond = f"; above 100 % is impossible{f' {of}' if of else ''}" if _is_beyond(share) else ""
    return Quantity(share.value, "share", share.low, share.high, beyond)
