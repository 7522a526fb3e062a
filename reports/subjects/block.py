"""What share of a transformer block its attention layer takes, and at which N more than half.

A block's time and that of its layer are measured in the same blocks of calls if the scenario has
`contrast: [scope]`. What is left of a block is its feed-forward layer, two norms and two residuals.
"""

from collections.abc import Sequence
from dataclasses import replace

from ..data.row_groups import AXES, Group, Row, by, groups
from ..data.run_meta import Meta, caption
from ..elements import Card, Figure, Panel, Series, note
from ..formatting import length_text, list_text, more_below, paragraph
from ..quantity import Quantity
from . import Subject
from ._over import MOST_PANELS, joined, panel, with_ends
from ._pairs import Crossover, Pair, pair_table, pairs_of

TITLE = "Attention in a block"
SECTION = "asked"
ORDER = 16
BELOW_CLAIMS = True
HALF = 0.5
SHARE = "time_{}share"
HOW = (
    "A block is the attention layer with its projections, then a feed-forward layer of 4 d_model,"
    " each after a norm. By FLOPs, attention without a mask is half of it at N = 2 d_model."
)
Shares = Sequence[Pair]
"""One backend's layers over their blocks, in order of N."""


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = shares(rows)
    if not found:
        return Subject(lacking="No block was timed beside its layer: scope: [layer, block].")
    over_n = [(group, every) for group, every in found if len(group.lengths) > 1]
    table = pair_table(
        "Attention's share of a block",
        [one for _, every in found for some in every for one in some],
        "layer",
        "block",
        {
            "N": lambda one: Quantity(one.row["seq_len"], "length"),
            "share of time": of_time,
            "of FLOPs": lambda one: Quantity(one.ratio("work_flops"), "share"),
        },
        ("seq_len", "kv_seq_len"),
    )
    if not over_n:
        lines = tuple(f"{group.prefixed(finding(every))}." for group, every in found)
        return Subject(lines=lines, blocks=(note(HOW), table))
    shown = over_n[:MOST_PANELS]
    picture = Figure(
        title=joined([(group, finding(every)) for group, every in shown]),
        caption=caption(shown[0][0].problem, meta),
        panels=tuple(_panel(group, every) for group, every in shown),
        table=table,
    )
    card = Card(
        title=TITLE,
        sentence=f"{picture.title}.",
        picture=picture,
        subtitle="attention's share of a block's time, over N",
        note=paragraph(HOW, more_below(len(over_n) - len(shown))),
    )
    return Subject(card=card, blocks=(table,) if len(over_n) > len(shown) else ())


def of_time(one: Pair) -> Quantity:
    """The interval does not end above the whole."""
    time = one.time
    return Quantity(time.value, "share", time.low, min(time.high, max(1.0, time.value)))


def shares(rows: Sequence[Row]) -> list[tuple[Group, list[Shares]]]:
    """By problem over N and backend, where a block and its layer were timed."""
    kinds = by((row for row in rows if row.get("work_flops")), lambda row: row.get("scope"))
    blocks = groups(kinds.get("block", ()), "seq_len")
    on = ["backend", *(axis for axis in AXES if axis != "scope")]
    found = [(group, pairs_of(kinds.get("layer", ()), group.rows, on)) for group in blocks]
    return [
        (group, [sorted(some, key=_n) for some in by(pairs, lambda one: one.backend).values()])
        for group, pairs in found
        if pairs
    ]


def _n(one: Pair) -> int:
    return int(one.row["seq_len"])


def half(some: Shares) -> Crossover:
    """Disturbed times decide nothing."""
    ignored = [_n(one) for one in some if one.time.disturbed]
    return Crossover(
        ratios={_n(one): one.time for one in some}, edge=HALF, above=True, ignored=ignored
    )


def finding(every: Sequence[Shares]) -> str:
    """`attention was shown to take more than half of a block's time with fused at N = 1 024 and
    longer (71 % at N = 2 048), with sdpa at no N up to 2 048 (...)`.
    """
    texts = []
    for some in every:
        last = f"{of_time(some[-1])} at N = {length_text(_n(some[-1]))}"
        texts.append(f"with {some[0].backend} {half(some).text('less')} ({last})")
    return f"attention was shown to take more than half of a block's time {list_text(texts)}"


def _panel(group: Group, every: Sequence[Shares]) -> Panel:
    """The measured share of each backend over N, and that by FLOPs, with the line of one half."""
    most = max(every, key=len)
    counted = Series(
        backend="by FLOPs",
        kind="formula",
        x=tuple(map(_n, most)),
        y=tuple(one.ratio("work_flops") for one in most),
    )
    drawn = [with_ends(one.base, SHARE, of_time(one)) for some in every for one in some]
    measured = panel(
        replace(group, rows=drawn),
        "seq_len",
        SHARE,
        x_label="N",
        y_label="attention's share of a block",
        unit="share",
        y_scale="linear",
        line=(HALF, "half"),
    )
    return replace(measured, series=(*measured.series, counted))
