"""What a call and a token cost in energy, per problem and backend, beside the baseline."""

from collections.abc import Iterator
from math import isfinite

import pandas as pd

from ...harness.stats import Interval
from ..analysis.energy import Cost, costs, reasons
from ..data.run_meta import Meta, caption
from ..data.row_groups import Group, axis_text, groups, records
from ..elements import Block, Table, Text
from ..formatting import count_text, number_text, plural

TITLE = "Energy"
ORDER = 47
NEEDS = ("windows",)
MOST_TABLES = 8
PREFIXES = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    rows = records(frame)
    found = costs(rows, meta)
    if not found:
        why = (
            "; ".join(reasons(rows))
            or "no case was watched; a scenario asks for it with measure: [latency, memory, energy]"
        )
        yield Text(text=f"No energy was measured: {why}.", kind="note")
        return
    yield Text(
        text=(
            "Energy of the whole board during windows of the steady loop, over the calls in them; a"
            " token is one position of one sequence. Intervals are over windows; one window has"
            " none. Ratios are to the scenario's baseline, or to the first backend where that has"
            " no energy."
        ),
        kind="note",
    )
    by_case = {
        (cost.row["run"], cost.row["case"]): cost for _, members in found for cost in members
    }
    over_n = groups([cost.row for _, members in found for cost in members], "seq_len")
    for group in over_n[:MOST_TABLES]:
        members = [by_case[row["run"], row["case"]] for row in group.rows]
        yield from _finding(group, members)
        yield _table(group, members, meta)
    if left := over_n[MOST_TABLES:]:
        yield Text(
            text=(
                f"{plural(len(left), 'more problem')} not shown:"
                f" {'; '.join(group.label for group in left)}."
            ),
            kind="note",
        )
    if without := reasons(rows):
        yield Text(
            text=f"Cases that were watched and have no energy: {'; '.join(without)}.", kind="note"
        )


def _finding(group: Group, of: list[Cost]) -> Iterator[Block]:
    """Who differs most from the baseline at the longest N, if an interval leaves out 1."""
    longest = max(cost.row["seq_len"] for cost in of)
    members = [cost for cost in of if cost.row["seq_len"] == longest]
    clear = [cost for cost in members if cost.ratio is not None and cost.ratio.clear]
    baseline = next((cost.row["backend"] for cost in members if cost.is_baseline), "")
    if not clear or not baseline:
        return
    most = max(
        clear, key=lambda cost: max(cost.ratio.value, 1 / cost.ratio.value) if cost.ratio else 0
    )
    assert most.ratio is not None
    between = f"{number_text(most.ratio.low)} to {number_text(most.ratio.high)}"
    takes = (
        f"a call of {most.row['backend']} takes {number_text(most.ratio.value)} times the energy of"
        f" one of {baseline} ({between})"
    )
    yield Text(text=f"{group.said(takes)} at {axis_text('seq_len', longest)}.")


def _table(group: Group, members: list[Cost], meta: Meta) -> Table:
    rows = tuple(
        (
            count_text(cost.row["seq_len"]),
            cost.row["backend"],
            joules_text(cost.per_call_j),
            joules_text(cost.per_token_j),
            "1" if cost.is_baseline else _ratio_text(cost),
            str(cost.per_call_j.units),
        )
        for cost in sorted(members, key=lambda cost: cost.row["seq_len"])
    )
    return Table(
        title=f"Energy · {caption(group.problem, meta)}",
        columns=("N", "backend", "per call", "per token", "ratio to the baseline", "windows"),
        rows=rows,
        folded=True,
    )


def _ratio_text(cost: Cost) -> str:
    ratio = cost.ratio
    if ratio is None:
        return ""
    return (
        f"{number_text(ratio.value)} ({number_text(ratio.low)} to {number_text(ratio.high)})"
        if isfinite(ratio.low)
        else number_text(ratio.value)
    )


def joules_text(found: Interval) -> str:
    """A value with half the width of its interval, in the prefix that fits the value: `3.21 mJ ±
    0.05`.
    """
    scale, prefix = next(
        ((scale, prefix) for scale, prefix in PREFIXES if found.value >= scale), PREFIXES[-1]
    )
    half = f" ± {number_text((found.high - found.low) / 2 / scale)}" if isfinite(found.low) else ""
    return f"{number_text(found.value / scale)}{half} {prefix}J"
