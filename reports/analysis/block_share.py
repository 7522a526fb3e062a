"""What share of a transformer block its attention layer takes, and from which N on more than half.

A block's time and that of its layer are measured in the same blocks of calls if the scenario has
`contrast: [scope]`. What is left of a block is its feed-forward layer, two norms and two residuals.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from ..data.row_groups import Group, Row, axis_text, backends, groups, problem
from ..formatting import count_text, list_text
from .crossover import crossing, from_text
from .ratio import Ratio, time_ratio

HALF = 0.5


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


def with_shares(rows: Sequence[Row]) -> list[Group]:
    """Every problem over N, of which a block and its layer were timed."""
    blocks = [row for row in rows if row.get("scope") == "block"]
    layers = _layers(rows)
    return [
        group
        for group in groups(blocks, "seq_len")
        if any(_share(row, layers) is not None for row in group.rows)
    ]


def shares(group: Group, rows: Sequence[Row]) -> dict[str, list[Share]]:
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


def finding(group: Group, rows: Sequence[Row]) -> str:
    """`attention takes more than half of a block's time with fused from N = 1k on (...) and with
    sdpa at no N up to 2k; by FLOPs above N = 512`.
    """
    found = [dominance(some) for some in shares(group, rows).values()]
    texts = [f"with {one.backend} {one.text}" for one in found]
    counted = next((one.by_flops_text for one in found if one.by_flops_text), "")
    text = "attention takes more than half of a block's time"
    # without `whether`, `with fused undecided` would read as if it did
    text = f"whether {text}:" if any(one.is_open for one in found) else text
    text += f" {list_text(texts)}"
    return f"{text}; by FLOPs above {counted}" if counted else text


def findings(rows: Sequence[Row]) -> list[str]:
    return [group.prefixed(finding(group, rows)) for group in with_shares(rows)]


def longest(group: Group, rows: Sequence[Row]) -> str:
    """`at N = 2k attention takes 71 % of a block with fused and 52 % with sdpa`."""
    found = [some[-1] for some in shares(group, rows).values()]
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
