"""What share of a transformer block its attention layer takes, and from which N on more than half.

A block's time and that of its layer are measured in the same blocks of calls if the scenario has
`contrast: [scope]`. What is left of a block is its feed-forward layer, two norms and two residuals.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..data.polynomial import through
from ..data.processor_time import time_of
from ..data.row_groups import Group, Row, axis_text, backends, by, case_key, groups, problem
from ..data.run_meta import Meta, caption
from ..elements import Card, Figure, Panel, Series, note, table_of
from ..formatting import count_text, list_text, more_below, paragraph
from ..judging.pair import time_ratio
from ..judging.ratio import Ratio
from ..quantity import Quantity
from . import Subject
from ._crossovers import Crossover, about_text
from ._over import MOST_PANELS, joined, panel, with_ends

TITLE = "Attention in a block"
SECTION = "asked"
ORDER = 16
NEEDS = ("scope", "work_flops", "latency_ms")
BELOW_CLAIMS = True
MOST_FIGURES = 2
HALF = 0.5
SHARE = "time_{}share"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A block and its layer at one N; `time`: of the layer over that of the block."""

    problem: str
    block: Row
    layer: Row
    time: Ratio

    @property
    def n(self) -> int:
        return int(self.block["seq_len"])

    @property
    def of_time(self) -> Quantity:
        """The interval does not end above the whole."""
        most = max(1.0, self.time.value)
        return Quantity(self.time.value, "share", self.time.low, min(self.time.high, most))

    def of(self, column: str) -> float | None:
        """What is counted; None if one of them is not known."""
        part, whole = self.layer.get(column), self.block.get(column)
        return part / whole if part is not None and whole else None


@dataclass(frozen=True, slots=True)
class Dominance:
    """Of one backend: from which N on attention takes more than half of a block. Disturbed times
    decide nothing.
    """

    shares: Sequence[Share]
    """In order of N."""

    @property
    def backend(self) -> str:
        return str(self.shares[0].block["backend"])

    @property
    def half(self) -> Crossover:
        return Crossover(
            ratios={one.n: one.time for one in self.shares},
            edge=HALF,
            above=True,
            ignored=[one.n for one in self.shares if one.time.disturbed],
        )

    @property
    def by_flops(self) -> float | None:
        """The N at which its FLOPs a N + c N² are those of the rest, b N; None if they are not so,
        as under most masks.
        """
        flops = {one.n: (one.layer["work_flops"], one.block["work_flops"]) for one in self.shares}
        layer = through({n: part for n, (part, _) in flops.items()})
        rest = through({n: whole - part for n, (part, whole) in flops.items()})
        if layer is None or rest is None or layer.off or rest.off or layer.quadratic <= 0:
            return None
        found = float((rest.linear - layer.linear) / layer.quadratic)
        others = (layer.constant, rest.constant, rest.quadratic)
        return found if found > 0 and not any(others) else None

    @property
    def is_open(self) -> bool:
        """It is not decided at the longest N."""
        last = self.shares[-1].n
        return last not in self.half.holds_at and last not in self.half.fails_at

    @property
    def text(self) -> str:
        """`from N = 1k on (less up to 512, half at about 700)`."""
        if not self.is_open:
            return self.half.text("less", "half")
        last = self.shares[-1]
        where = f"not confirmed at N = {count_text(last.n)}, where it takes {last.of_time}"
        where += " while other work competed for the cores" if last.time.disturbed else ""
        return where + self.half.before("less", "half")

    @property
    def by_flops_text(self) -> str:
        return "" if self.by_flops is None else f"N = {_about(self.by_flops)}"


Found = Sequence[tuple[Group, list[Dominance]]]
"""Each problem over N, with what was found of each backend."""


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = dominances(rows)
    if not found:
        return Subject(lacking="No block was timed beside its layer: scope: [layer, block].")
    over_n = [(group, every) for group, every in found if len(group.lengths) > 1]
    starts = range(0, len(over_n), MOST_PANELS)[:MOST_FIGURES]
    pictures = [_figure(over_n[at : at + MOST_PANELS], meta) for at in starts]
    how = note(
        "A block is x + attention, then a feed-forward layer of 4 d_model, each after a norm. The"
        " share is the time of the attention layer, with its projections, over that of the block."
        " The rest is the feed-forward layer, the norms and the residuals. By FLOPs, attention"
        " without a mask is half of a block at N = 2 d_model."
    )
    table = table_of(
        "Attention's share of a block",
        [one for _, of in found for some in of for one in some.shares],
        {
            "problem": lambda one: one.problem,
            "N": lambda one: Quantity(one.n, "count"),
            "backend": lambda one: str(one.block["backend"]),
            "layer": lambda one: time_of(one.layer),
            "block": lambda one: time_of(one.block),
            "share of time": lambda one: one.of_time,
            "of FLOPs": lambda one: Quantity(one.of("work_flops"), "share"),
            "peak bytes of the block": lambda one: Quantity(one.block.get("peak_bytes"), "bytes"),
            "layer's peak over it": lambda one: Quantity(one.of("peak_bytes"), "share"),
        },
        case=lambda one: case_key(one.block),
    )
    return Subject(
        card=_card(over_n, pictures[0]) if pictures else None,
        lines=tuple(f"{group.prefixed(finding(of))}." for group, of in found if not pictures),
        blocks=(how, *pictures[1:], table),
    )


def _card(over_n: Found, picture: Figure) -> Card:
    shown = len(picture.panels)
    last = longest(over_n[shown - 1][1])
    return Card(
        title=TITLE,
        sentence=f"{picture.title}.",
        picture=picture,
        subtitle="attention's share of a block's time, over N",
        note=paragraph(f"{last}.", more_below(len(over_n) - shown)),
    )


def _figure(some: Found, meta: Meta) -> Figure:
    """A panel for each problem; its table says from which N on it is more than half."""
    return Figure(
        title=joined([(group, finding(every)) for group, every in some]),
        caption=caption(some[0][0].problem, meta),
        panels=tuple(_panel(group, every) for group, every in some),
        table=table_of(
            "From which N on attention takes more than half of a block",
            [one for _, every in some for one in every],
            {
                "problem": lambda one: one.shares[0].problem,
                "backend": lambda one: one.backend,
                "of its time": lambda one: one.text,
                "of its FLOPs": lambda one: one.by_flops_text,
            },
        ),
    )


def _panel(group: Group, every: Sequence[Dominance]) -> Panel:
    """The measured share of each backend over N, and that by FLOPs, with the line of one half."""
    most = max((one.shares for one in every), key=len)
    counted = Series(
        backend="by FLOPs",
        kind="formula",
        x=tuple(one.n for one in most),
        y=tuple(one.of("work_flops") for one in most),
    )
    shares = [one for some in every for one in some.shares]
    measured = panel(
        replace(group, rows=[with_ends(one.block, SHARE, one.of_time) for one in shares]),
        "seq_len",
        SHARE,
        x_label="N",
        y_label="attention's share of a block",
        unit="share",
        y_scale="linear",
        line=(HALF, "half"),
    )
    return replace(measured, series=(*measured.series, counted))


def dominances(rows: Sequence[Row]) -> list[tuple[Group, list[Dominance]]]:
    """Of every problem over N of which a block and its layer were timed."""
    layers = {_key(row): row for row in rows if row.get("scope") == "layer"}
    found = []
    for group in groups([row for row in rows if row.get("scope") == "block"], "seq_len"):
        shares = [
            Share(problem=group.label or "all", block=row, layer=layer, time=time)
            for name in backends(group.rows)
            for row in group.of_backend(name)
            if (layer := layers.get(_key(row))) is not None
            and (time := time_ratio(layer, row)) is not None
            and row.get("work_flops")
        ]
        if every := by(shares, lambda one: str(one.block["backend"])).values():
            found.append((group, [*map(Dominance, every)]))
    return found


def finding(every: Sequence[Dominance]) -> str:
    """`attention takes more than half of a block's time with fused from N = 1k on (...) and with
    sdpa at no N up to 2k; by FLOPs above N = 512`.
    """
    counted = next((one.by_flops_text for one in every if one.by_flops_text), "")
    text = "attention takes more than half of a block's time"
    # without `whether`, `with fused not confirmed` would read as if it did
    text = f"whether {text}:" if any(one.is_open for one in every) else text
    text += f" {list_text([f'with {one.backend} {one.text}' for one in every])}"
    return f"{text}; by FLOPs above {counted}" if counted else text


def longest(every: Sequence[Dominance]) -> str:
    """`At N = 2k attention takes 71 % of a block's time with fused and 52 % with sdpa`."""
    last = [(one.backend, one.shares[-1]) for one in every]
    n = max(share.n for _, share in last)
    texts = [f"{share.of_time} with {name}" for name, share in last if share.n == n]
    return f"At {axis_text('seq_len', n)} attention takes {list_text(texts)} of a block's time"


def _key(row: Row) -> tuple[Any, ...]:
    return row["backend"], *(value for axis, value in problem(row).items() if axis != "scope")


def _about(n: float) -> str:
    return about_text(n) if n != round(n) else count_text(round(n))
