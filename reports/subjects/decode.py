"""Decode by memory bandwidth: how much of it each backend reaches, over the length of the cache."""

from collections import Counter
from collections.abc import Sequence

from ..data.peaks import NEXT, is_decode, memory_bytes_per_s
from ..data.row_groups import Group, Row, axis_title, groups, label, varying_axes
from ..data.run_meta import Meta, caption
from ..elements import Card, Figure, Panel, note
from ..formatting import bandwidth_text, capital, more_below, paragraph
from ..quantity import Number, Quantity
from . import Subject
from ._over import MOST_PANELS, by_backend, ends, lines_over, panel

TITLE = "Decode and memory bandwidth"
SECTION = "asked"
ORDER = 16
MOST_NAMED = 4
AXIS = "kv_seq_len"
RATE = "decode_{}bytes_per_s"
HOW = (
    "A few queries read the whole cache, so memory limits a decode step. It must move at least the"
    " keys and values that the mask keeps, once for all heads that share them, the queries and the"
    " output. 100 % is the bandwidth of a copy, as `attnbench doctor --deep` measured it here."
)


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card is of runs that are mostly about decode; in others the finding is a line."""
    steps = timed_steps(rows)
    if not steps:
        return Subject(
            lacking="No decode step was timed, a forward pass of few queries over many keys:"
            " `attnbench run decode`."
        )
    known = known_rates(steps)
    if not known:
        return Subject(lacking=paragraph(*_remarks(steps)))
    timed = [row for row in rows if row.get("latency_ms") is not None]
    text = finding(known, meta)
    found = sorted(
        groups(known, AXIS), key=lambda group: -max(row["minimal_bytes"] for row in group.rows)
    )
    shown = found[:MOST_PANELS]
    picture = Figure(
        title=text,
        caption=caption(shown[0].problem, meta),
        panels=tuple(_panel(group, meta) for group in shown),
        table=by_backend(
            "Share of the measured memory bandwidth, or the rate where none was measured",
            *lines_over(found, AXIS),
            lambda row, _: Number(own_text(row)),
        ),
    )
    if 2 * len(steps) <= len(timed):
        return Subject(lines=(f"{text}.",), blocks=(note(HOW), picture))
    card = Card(
        title="How much of memory's bandwidth",
        subtitle=f"bytes that must be moved over time, by {axis_title(AXIS)}",
        sentence=f"{text}.",
        picture=picture,
        note=paragraph(HOW, *_remarks(known), more_below(len(found) - len(shown))),
    )
    return Subject(card=card)


def timed_steps(rows: Sequence[Row]) -> Sequence[Row]:
    """Decode steps with a latency, also those whose bytes are not known."""
    return [row for row in rows if is_decode(row) and row.get("latency_ms") is not None]


def known_rates(rows: Sequence[Row]) -> Sequence[Row]:
    return [row for row in timed_steps(rows) if row.get("decode_bytes_per_s") is not None]


def own_text(row: Row) -> str:
    """The share of the measured bandwidth, `61.0 % (58.2 to 63.9)`; the rate if there is none."""
    value, *bounds = ends(row, "decode_bandwidth_{}ratio")
    return str(Quantity(value, "share", *bounds)) or own_rate(row)


def own_rate(row: Row) -> str:
    """`9.80 GB/s (9.41 GB/s to 10.2 GB/s)`."""
    value, *bounds = ends(row, RATE)
    return str(Quantity(value, "bytes_per_s", *bounds))


def notes(row: Row) -> list[str]:
    return [one for one in str(row.get("decode_bandwidth_note") or "").split(NEXT) if one]


def largest(rows: Sequence[Row]) -> Group:
    """The problem that moves the most bytes, so that caches and launches matter least."""
    return max(groups(known_rates(rows), None), key=lambda group: group.rows[0]["minimal_bytes"])


def finding(known: Sequence[Row], meta: Meta) -> str:
    """One sentence on the largest problem of steps whose rates are known.

    `sdpa reaches 78.4 % (75.0 to 81.9) of the measured memory bandwidth at N_kv = 8 192, h_kv = 32
    (9.80 of 12.5 GB/s), naive 31.2 % (30.0 to 32.5)`.
    """
    group = largest(known)
    axes = varying_axes([other.problem for other in groups(known, None)])
    where = label(group.problem, axes) or label(group.problem, [AXIS])
    first, *others = sorted(group.rows, key=lambda row: -row["decode_bytes_per_s"])
    whole = memory_bytes_per_s(meta[first["run"]])
    if whole is None:
        text = f"{first['backend']} moves {own_rate(first)} at {where}"
    else:
        rate = f"{bandwidth_text(first['decode_bytes_per_s'])} of {bandwidth_text(whole)}"
        of = f"{own_text(first)} of the measured memory bandwidth"
        text = f"{first['backend']} reaches {of} at {where} ({rate})"
    rest = [f"{row['backend']} {own_text(row)}" for row in others]
    if len(rest) > MOST_NAMED:
        rest = [*rest[:MOST_NAMED], f"{len(rest) - MOST_NAMED} more less"]
    return "; ".join([", ".join([text, *rest]), *notes(first)])


def _remarks(steps: Sequence[Row]) -> list[str]:
    counts, every = Counter(one for row in steps for one in notes(row)), len(steps)
    return [
        f"{capital(one)}." if count == every else f"In {count} of {every} steps {one}."
        for one, count in counts.items()
    ]


def _panel(group: Group, meta: Meta) -> Panel:
    whole = memory_bytes_per_s(meta[group.problem["run"]])
    line = None if whole is None else (whole, f"measured: {bandwidth_text(whole)}")
    return panel(group, AXIS, RATE, y_label="rate", unit="bytes_per_s", line=line)
