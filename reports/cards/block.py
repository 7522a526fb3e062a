"""Attention's share of a transformer block over N, and from which N on it is more than half."""

from math import isfinite

import pandas as pd

from ..analysis.block_share import dominance, finding, longest, shares, upper, with_shares
from ..data.row_groups import records
from ..data.run_meta import Meta, caption
from ..elements import Card, Figure, Panel, Series, Table
from ..formatting import plural
from ._over import MOST_PANELS, joined, tests_claims

ORDER = 16


def card(frame: pd.DataFrame, meta: Meta) -> Card | None:
    """None without a block that was timed beside its layer at two lengths."""
    if tests_claims(meta) or "scope" not in frame.columns:
        return None
    rows = records(frame)
    found = [group for group in with_shares(rows) if len(group.lengths) > 1]
    if not found:
        return None
    drawn = found[:MOST_PANELS]
    text = joined([(group, finding(group, rows)) for group in drawn])
    more = len(found) - len(drawn)
    panels = []
    for group in drawn:
        every = shares(group, rows)
        panels.append(
            Panel(
                title=group.label,
                x_label="N",
                y_label="attention's share of a block",
                unit="share",
                series=tuple(
                    Series(
                        backend=name,
                        kind="measured",
                        x=tuple(one.block["seq_len"] for one in some),
                        y=tuple(one.time.value for one in some),
                        low=tuple(_drawn(one.time.low) for one in some),
                        high=tuple(_drawn(upper(one.time)) for one in some),
                    )
                    for name, some in every.items()
                ),
                line=(0.5, "half"),
                y_scale="linear",
            )
        )
    return Card(
        name="block",
        title="Attention in a block",
        sentence=f"{text}.",
        picture=Figure(
            title=text,
            caption=caption(drawn[0].problem, meta),
            description=(
                "Time of the attention layer over that of a whole transformer block, over the"
                " sequence length N, one line per backend with 95 % intervals as bars, and the line"
                " of one half."
            ),
            panels=tuple(panels),
            table=Table(
                title="From which N on attention takes more than half of a block",
                columns=("problem", "backend", "of its time", "of its FLOPs"),
                rows=tuple(
                    (group.label or "all", one.backend, one.text, one.by_flops_text)
                    for group in drawn
                    for one in map(dominance, shares(group, rows).values())
                ),
            ),
        ),
        subtitle="attention's share of a block's time, over N",
        note=(
            f"{longest(drawn[-1], rows)[0].upper()}{longest(drawn[-1], rows)[1:]}."
            + (f" {plural(more, 'more problem')} below." if more > 0 else "")
        ),
        wide=len(drawn) > 2,
    )


def _drawn(bound: float) -> float | None:
    return bound if isfinite(bound) else None
