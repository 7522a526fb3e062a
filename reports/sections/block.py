"""Attention in a transformer block: its share of time, bytes and FLOPs over N and d_model."""

from collections.abc import Iterator, Sequence

import pandas as pd

from ..analysis.block_share import (
    Share,
    dominance,
    finding,
    percent,
    shares,
    upper,
    with_shares,
)
from ..data.row_groups import Group, Row, case_key, records
from ..data.run_meta import Meta, caption
from ..elements import Block, Figure, Panel, Series, Table, note
from ..formatting import bytes_text, count_text, percent_text, time_text
from ._over_n import N_LABEL, multiples, not_drawn

TITLE = "Attention in a block"
ORDER = 43
NEEDS = ("scope", "work_flops", "latency_ms")
MOST_FIGURES = 6
BY_FLOPS = "by FLOPs"


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    rows = records(frame)
    found = with_shares(rows)
    if not found:
        yield note("No block was timed beside its layer: scope: [layer, block].")
        return
    yield note(
        "A block is x + attention, then a feed-forward layer of 4 d_model, each after a norm. The"
        " share is the time of the attention layer, with its projections, over that of the block."
        " The rest is the feed-forward layer, the norms and the residuals. By FLOPs, attention"
        " without a mask is half of a block at N = 2 d_model."
    )
    over_n = [group for group in found if len(group.lengths) > 1]
    drawn = [(group, _figure(group, rows, meta)) for group in over_n[:MOST_FIGURES]]
    yield from multiples(drawn, "Attention's share of a block's time")
    left = [group for group in found if group not in over_n[:MOST_FIGURES]]
    yield from not_drawn(left, "; the table has them")
    yield _points(found, rows)
    if left:
        yield _table(left, rows)


def share_panel(group: Group, rows: Sequence[Row], title: str = "") -> Panel:
    """The measured share of each backend over N, and that by FLOPs, with the line of one half."""
    every = shares(group, rows)
    some = max(every.values(), key=len)
    counted = Series(
        backend=BY_FLOPS,
        kind="formula",
        x=tuple(one.block["seq_len"] for one in some),
        y=tuple(one.work_flops for one in some),
    )
    return Panel(
        title=title,
        x_label=N_LABEL,
        y_label="attention's share of a block",
        unit="share",
        series=(*(_series(name, some) for name, some in every.items()), counted),
        line=(0.5, "half"),
        y_scale="linear",
    )


def _figure(group: Group, rows: Sequence[Row], meta: Meta) -> Figure:
    return Figure(
        title=group.prefixed(finding(group, rows)),
        caption=caption(group.problem, meta),
        description=(
            "Time of the attention layer over that of the whole block, over the sequence length N"
            " (logarithmic), one line per backend with 95 % intervals as bars, and the share of"
            " FLOPs in grey. Above the line of one half attention takes most of the time. The table"
            " has the numbers."
        ),
        panels=(share_panel(group, rows),),
        table=_table([group], rows),
    )


def _series(backend: str, some: Sequence[Share]) -> Series:
    return Series(
        backend=backend,
        kind="measured",
        x=tuple(one.block["seq_len"] for one in some),
        y=tuple(one.time.value for one in some),
        low=tuple(_number(one.time.low) for one in some),
        high=tuple(_number(upper(one.time)) for one in some),
        cases=tuple(case_key(one.block) for one in some),
    )


def _number(bound: float) -> float | None:
    return bound if bound == bound else None  # NaN without an interval


def _points(found: Sequence[Group], rows: Sequence[Row]) -> Table:
    lines = []
    for group in found:
        for name, some in shares(group, rows).items():
            one = dominance(some)
            lines.append((group.label or "all", name, one.text, one.by_flops_text))
    return Table(
        title="From which N on attention takes more than half of a block",
        columns=("problem", "backend", "of its time", "of its FLOPs"),
        rows=tuple(lines),
    )


def _table(found: Sequence[Group], rows: Sequence[Row]) -> Table:
    lines: list[tuple[str, ...]] = []
    cases = {}
    for group in found:
        for name, some in shares(group, rows).items():
            for one in some:
                cases[len(lines), 2] = case_key(one.block)
                peak = "" if one.peak_bytes is None else percent_text(one.peak_bytes)
                lines.append(
                    (
                        group.label or "all",
                        count_text(one.block["seq_len"]),
                        name,
                        time_text(one.layer["latency_ms"]),
                        time_text(one.block["latency_ms"]),
                        percent(one.time),
                        percent_text(one.work_flops),
                        bytes_text(one.block.get("peak_bytes")),
                        peak,
                    )
                )
    return Table(
        title="Attention's share of a block",
        columns=(
            "problem",
            "N",
            "backend",
            "layer",
            "block",
            "share of time",
            "of FLOPs",
            "peak bytes of the block",
            "layer's peak over it",
        ),
        rows=tuple(lines),
        cases=cases,
    )
