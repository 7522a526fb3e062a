"""What share of a transformer block its attention layer takes, and from which N on more than half.

A block's time and that of its layer are measured in the same blocks of calls if the scenario has
`contrast: [scope]`. What is left of a block is its feed-forward layer, two norms and two residuals.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from ..data.row_groups import Group, Row, axis_text, backends, case_key, groups, problem
from ..data.run_meta import Meta, caption
from ..elements import Card, Figure, Panel, Series, Table, note
from ..formatting import bytes_text, count_text, list_text, percent_text, plural, time_text
from ..ratio import Ratio, time_ratio
from . import Subject
from ._crossovers import crossing, from_text
from ._over import MOST_PANELS, joined

TITLE = "Attention in a block"
ORDER = 16
NEEDS = ("scope", "work_flops", "latency_ms")
BELOW_CLAIMS = True
MOST_FIGURES = 2
HALF = 0.5
Shares = dict[str, list["Share"]]
"""By backend, in order of N."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The layer over its block, at one N. `peak_bytes`: None if one of them is not known."""

    block: Row
    layer: Row
    time: Ratio
    work_flops: float
    peak_bytes: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dominance:
    """From which N on attention takes more than half of a block. Disturbed times decide nothing.

    `more_from`: the shortest N from which on it certainly does at every length; None if not at the
    longest, where `last` is the share. `less_to`: the longest N below at which it certainly takes
    less. `half_at`: where straight lines through the shares measured from there to there, over the
    logarithm of N, are one half; None if they are so several times.
    `by_flops`: the N at which its FLOPs are half of the block's, whether or not that was measured.
    `lengths`: every N that was timed; `more_at` and `less_at`: those at which it is certain.
    """

    backend: str
    more_from: int | None
    less_to: int | None
    half_at: float | None
    by_flops: float | None
    lengths: tuple[int, ...]
    more_at: tuple[int, ...]
    less_at: tuple[int, ...]
    last: Ratio

    @property
    def is_open(self) -> bool:
        """It is undecided at the longest N."""
        return self.more_from is None and self.less_to != self.lengths[-1]

    @property
    def text(self) -> str:
        """`from N = 1k on (less up to 512, half at about 700)`."""
        first, last = self.lengths[0], self.lengths[-1]
        if self.more_from is None:
            return self._not_at_the_longest
        if self.more_from == first and first != last:
            return f"at every N from {count_text(first)} to {count_text(last)}"
        half = "" if self.half_at is None else f", half at about {_about(self.half_at)}"
        where = from_text(self.more_from, self.lengths, f"N = {count_text(self.more_from)}")
        return f"{where}{self._less_text(half)}"

    @property
    def _not_at_the_longest(self) -> str:
        last = count_text(self.lengths[-1])
        if self.less_at == self.lengths:
            return f"at no N up to {last}"
        only = f"only at N = {_lengths_text(self.more_at)}; " if self.more_at else ""
        if self.less_to == self.lengths[-1]:
            open_at = [n for n in self.lengths if n not in (*self.less_at, *self.more_at)]
            undecided = f", undecided at {_lengths_text(open_at)}" if open_at else ""
            return f"{only}not at N = {last}{undecided}"
        busy = " while other work competed for the cores" if self.last.disturbed else ""
        at = f"undecided at N = {last}, where it takes {percent(self.last)}{busy}"
        return f"{only}{at}{self._less_text()}"

    def _less_text(self, half: str = "") -> str:
        if self.less_to is None:
            return ""
        below = {n for n in self.lengths if n <= self.less_to}
        where = "up to" if below <= set(self.less_at) else "at"
        return f" (less {where} {count_text(self.less_to)}{half})"

    @property
    def by_flops_text(self) -> str:
        return "" if self.by_flops is None else f"N = {_about(self.by_flops)}"


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = [(group, shares(group, rows)) for group in with_shares(rows)]
    if not found:
        return Subject(lacking="No block was timed beside its layer: scope: [layer, block].")
    over_n = [(group, every) for group, every in found if len(group.lengths) > 1]
    pictures = [
        _figure(over_n[at : at + MOST_PANELS], meta) for at in range(0, len(over_n), MOST_PANELS)
    ][:MOST_FIGURES]
    how = note(
        "A block is x + attention, then a feed-forward layer of 4 d_model, each after a norm. The"
        " share is the time of the attention layer, with its projections, over that of the block."
        " The rest is the feed-forward layer, the norms and the residuals. By FLOPs, attention"
        " without a mask is half of a block at N = 2 d_model."
    )
    return Subject(
        card=_card(over_n, pictures[0]) if pictures else None,
        lines=tuple(f"{group.prefixed(finding(every))}." for group, every in found if not pictures),
        blocks=(how, *pictures[1:], _table(found)),
    )


def _card(over_n: Sequence[tuple[Group, Shares]], picture: Figure) -> Card:
    more = len(over_n) - len(picture.panels)
    last = longest(over_n[len(picture.panels) - 1][1])
    return Card(
        name="block",
        title=TITLE,
        sentence=f"{picture.title}.",
        picture=picture,
        subtitle="attention's share of a block's time, over N",
        note=f"{last[0].upper()}{last[1:]}."
        + (f" {plural(more, 'more problem')} below." if more else ""),
        wide=len(picture.panels) > 2,
    )


def _figure(some: Sequence[tuple[Group, Shares]], meta: Meta) -> Figure:
    """A panel for each problem; its table says from which N on it is more than half."""
    return Figure(
        title=joined([(group, finding(every)) for group, every in some]),
        caption=caption(some[0][0].problem, meta),
        description=(
            "Time of the attention layer over that of the whole block, over the sequence length N"
            " (logarithmic), one line per backend with 95 % intervals as bars, and the share of"
            " FLOPs in grey. Above the line of one half attention takes most of the time. The table"
            " has the numbers."
        ),
        panels=tuple(_panel(every, group.label) for group, every in some),
        table=Table(
            title="From which N on attention takes more than half of a block",
            columns=("problem", "backend", "of its time", "of its FLOPs"),
            rows=tuple(
                (group.label or "all", one.backend, one.text, one.by_flops_text)
                for group, every in some
                for one in map(dominance, every.values())
            ),
        ),
    )


def _panel(every: Shares, title: str) -> Panel:
    """The measured share of each backend over N, and that by FLOPs, with the line of one half."""
    some = max(every.values(), key=len)
    counted = Series(
        backend="by FLOPs",
        kind="formula",
        x=tuple(one.block["seq_len"] for one in some),
        y=tuple(one.work_flops for one in some),
    )
    return Panel(
        title=title,
        x_label="N",
        y_label="attention's share of a block",
        unit="share",
        series=(*(_series(name, some) for name, some in every.items()), counted),
        line=(HALF, "half"),
        y_scale="linear",
    )


def _series(backend: str, some: Sequence[Share]) -> Series:
    return Series(
        backend=backend,
        kind="measured",
        x=tuple(one.block["seq_len"] for one in some),
        y=tuple(one.time.value for one in some),
        low=tuple(one.time.low if isfinite(one.time.low) else None for one in some),
        high=tuple(upper(one.time) if isfinite(one.time.high) else None for one in some),
        cases=tuple(case_key(one.block) for one in some),
    )


def _table(found: Sequence[tuple[Group, Shares]]) -> Table:
    every = [(group, one) for group, of in found for some in of.values() for one in some]
    return Table(
        title="Attention's share of a block",
        columns=(
            *("problem", "N", "backend", "layer", "block", "share of time", "of FLOPs"),
            *("peak bytes of the block", "layer's peak over it"),
        ),
        rows=tuple(
            (
                group.label or "all",
                count_text(one.block["seq_len"]),
                one.block["backend"],
                time_text(one.layer["latency_ms"]),
                time_text(one.block["latency_ms"]),
                percent(one.time),
                percent_text(one.work_flops),
                bytes_text(one.block.get("peak_bytes")),
                "" if one.peak_bytes is None else percent_text(one.peak_bytes),
            )
            for group, one in every
        ),
        cases={(line, 2): case_key(one.block) for line, (_, one) in enumerate(every)},
    )


def with_shares(rows: Sequence[Row]) -> list[Group]:
    """Every problem over N, of which a block and its layer were timed."""
    blocks = [row for row in rows if row.get("scope") == "block"]
    layers = _layers(rows)
    return [
        group
        for group in groups(blocks, "seq_len")
        if any(_share(row, layers) is not None for row in group.rows)
    ]


def shares(group: Group, rows: Sequence[Row]) -> Shares:
    """By backend, in order of N. `rows`: among which the layers are."""
    layers = _layers(rows)
    found = {
        name: [one for row in group.of_backend(name) if (one := _share(row, layers))]
        for name in backends(group.rows)
    }
    return {name: some for name, some in found.items() if some}


def dominance(some: Sequence[Share]) -> Dominance:
    """Of one backend, in order of N."""
    lengths = [one.block["seq_len"] for one in some]
    more_from: int | None = None
    for one in reversed(some):
        if not one.time.low > HALF or one.time.disturbed:  # also without an interval
            break
        more_from = one.block["seq_len"]
    calm = [one for one in some if not one.time.disturbed]
    all_less = [one for one in calm if one.time.high < HALF]
    less = [one for one in all_less if more_from is None or one.block["seq_len"] < more_from]
    less_to: int | None = less[-1].block["seq_len"] if less else None
    half_at = None
    if more_from is not None and less:
        points = [(one.block["seq_len"], one.time.value - HALF) for one in some]
        half_at = crossing([at for at in points if less[-1].block["seq_len"] <= at[0] <= more_from])
    return Dominance(
        backend=some[0].block["backend"],
        more_from=more_from,
        less_to=less_to,
        half_at=half_at,
        by_flops=_by_flops(some),
        lengths=tuple(lengths),
        more_at=tuple(one.block["seq_len"] for one in calm if one.time.low > HALF),
        less_at=tuple(one.block["seq_len"] for one in all_less),
        last=some[-1].time,
    )


def finding(every: Shares) -> str:
    """`attention takes more than half of a block's time with fused from N = 1k on (...) and with
    sdpa at no N up to 2k; by FLOPs above N = 512`.
    """
    found = [dominance(some) for some in every.values()]
    texts = [f"with {one.backend} {one.text}" for one in found]
    counted = next((one.by_flops_text for one in found if one.by_flops_text), "")
    text = "attention takes more than half of a block's time"
    # without `whether`, `with fused undecided` would read as if it did
    text = f"whether {text}:" if any(one.is_open for one in found) else text
    text += f" {list_text(texts)}"
    return f"{text}; by FLOPs above {counted}" if counted else text


def longest(every: Shares) -> str:
    """`at N = 2k attention takes 71 % of a block with fused and 52 % with sdpa`."""
    found = [some[-1] for some in every.values()]
    n = max(one.block["seq_len"] for one in found)
    texts = [
        f"{percent(one.time)} with {one.block['backend']}"
        for one in found
        if one.block["seq_len"] == n
    ]
    return f"at {axis_text('seq_len', n)} attention takes {list_text(texts)} of a block's time"


def _share(block: Row, layers: dict[tuple[Any, ...], Row]) -> Share | None:
    layer = layers.get(_key(block))
    time = time_ratio(layer, block) if layer is not None else None
    if layer is None or time is None or not block.get("work_flops"):
        return None
    peaks = layer.get("peak_bytes"), block.get("peak_bytes")
    return Share(
        block=block,
        layer=layer,
        time=time,
        work_flops=layer["work_flops"] / block["work_flops"],
        peak_bytes=peaks[0] / peaks[1] if peaks[0] is not None and peaks[1] else None,
    )


def _layers(rows: Sequence[Row]) -> dict[tuple[Any, ...], Row]:
    return {_key(row): row for row in rows if row.get("scope") == "layer"}


def _key(row: Row) -> tuple[Any, ...]:
    return row["backend"], *(value for axis, value in problem(row).items() if axis != "scope")


def _by_flops(some: Sequence[Share]) -> float | None:
    """N at which the layer's FLOPs a N + c N² are those of the rest, b N; None if they are not so.

    Under most masks they are not; a third length must agree to a thousandth.
    """
    if len(some) < 3:
        return None
    points = [
        (
            one.block["seq_len"],
            one.layer["work_flops"] / one.block["seq_len"],
            (one.block["work_flops"] - one.layer["work_flops"]) / one.block["seq_len"],
        )
        for one in some
    ]
    (n, per_token, rest), (n_last, per_token_last, _) = points[0], points[-1]
    slope = (per_token_last - per_token) / (n_last - n)
    start = per_token - slope * n
    if slope <= 0 or any(abs(start + slope * m - y) > 1e-3 * y for m, y, _ in points):
        return None
    found = (rest - start) / slope
    return found if found > 0 else None


def percent(share: Ratio) -> str:
    """`71 % (64 % to 80 %)`; a part of a block cannot be more than the whole."""
    text = f"{100 * share.value:.0f} %"
    if not isfinite(share.low):
        return text
    return f"{text} ({100 * share.low:.0f} % to {100 * upper(share):.0f} %)"


def upper(share: Ratio) -> float:
    """The upper end of the interval, but not above the whole."""
    return min(share.high, max(1.0, share.value))


def _lengths_text(lengths: Sequence[int]) -> str:
    return list_text([count_text(n) for n in lengths])


def _about(n: float) -> str:
    return f"{float(f'{n:.2g}'):.0f}" if n != round(n) else count_text(round(n))
