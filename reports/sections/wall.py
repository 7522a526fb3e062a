"""The memory wall: the longest N that fits, and peak bytes over N, measured and by formula, with
every case that did not fit.
"""

from collections.abc import Iterator
from typing import Literal

import pandas as pd

from ..analysis.max_seq_len import LIMITS, note, off_ratio, wall_groups
from ..analysis.max_seq_len import finding as longest_finding
from ..analysis.missing_points import absent
from ..analysis.rows import case_key
from ..analysis.wall import OUT_OF_MEMORY, ends, finding
from ..data.run_meta import Meta, budget_bytes, caption
from ..data.row_groups import Group, Row, backends, groups, records
from ..elements import Block, Figure, Panel, Series, Table, Text
from ..formatting import STATUS_WORDS, bytes_text, count_text, plural

TITLE = "Memory wall"
ORDER = 20
NEEDS = ("peak_bytes", "predicted_peak_bytes", "input_bytes")
MOST_FIGURES = 8


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    rows = records(frame)
    over_n = [
        group
        for group in groups(rows, "seq_len")
        if len({row["seq_len"] for row in group.rows}) > 1
    ]
    drawn = [group for group in over_n if any(_height(row, None) is not None for row in group.rows)]
    yield from _found(meta)
    if not drawn and not (frame.empty and wall_groups(meta)):
        why = (
            "no bytes were measured or predicted"
            if over_n
            else "no problem was planned at more than one N"
        )
        yield Text(text=f"There is nothing to draw over N: {why}.", kind="note")
    if not drawn:
        return
    yield Text(
        text=(
            "Peak bytes are what a call needs beyond its inputs and weights, output included."
            " Inputs count against the budget too, so a case can fail a little below the line."
        ),
        kind="note",
    )
    for group in drawn[:MOST_FIGURES]:
        yield _figure(group, meta)
    if left := drawn[MOST_FIGURES:]:
        yield Text(
            text=(
                f"{plural(len(left), 'more problem')} not drawn:"
                f" {'; '.join(group.label for group in left)}."
            ),
            kind="note",
        )


def _found(meta: Meta) -> Iterator[Block]:
    """What the search for the longest N came to."""
    found = wall_groups(meta)
    for group in found[:MOST_FIGURES]:
        yield Text(text=f"{group.said(longest_finding(group.rows))}.")
    if found:
        yield Table(
            title=(
                "The longest N that fits: every probe up to it did; none did from the next"
                " column on"
            ),
            columns=(
                "backend",
                "problem",
                "predicted N",
                "fits up to",
                "fails from",
                "prediction is off by",
                "ended by",
                "note",
            ),
            rows=tuple(_found_cells(group, row) for group in found for row in group.rows),
        )


def _found_cells(group: Group, row: Row) -> tuple[str, ...]:
    lengths = (row.get(name) for name in ("predicted_seq_len", "seq_len_low", "seq_len_high"))
    off, limit = off_ratio(row), row.get("limited_by")
    off_text = "" if off is None else f"{100 * off:+.2f} %"
    ended_by = "" if limit is None else LIMITS.get(limit, limit)
    return (
        row["backend"],
        group.label,
        *("" if n is None else str(n) for n in lengths),
        off_text,
        ended_by,
        note(row),
    )


def _height(row: Row, budget: float | None) -> float | None:
    """Where a row stands: what was measured, or what the formula asks for, or at the budget."""
    if row["status"] == "ok":
        return row.get("peak_bytes") or None
    return (row.get("predicted_peak_bytes") or budget) if row["status"] in OUT_OF_MEMORY else None


def _figure(group: Group, meta: Meta) -> Figure:
    budget = budget_bytes(meta[group.problem["run"]])
    series: list[Series] = []
    shown = [
        row
        for row in group.rows
        if row["status"] in OUT_OF_MEMORY or _height(row, budget) is not None
    ]
    for backend in backends(shown):
        rows = sorted(
            (row for row in group.rows if row["backend"] == backend), key=lambda row: row["seq_len"]
        )
        series += [
            _series(
                backend, "formula", [(row, row.get("predicted_peak_bytes") or None) for row in rows]
            ),
            _series(
                backend,
                "measured",
                [(row, _height(row, budget) if row["status"] == "ok" else None) for row in rows],
            ),
            _series(
                backend,
                "failed",
                [(row, _height(row, budget)) for row in rows if row["status"] in OUT_OF_MEMORY],
            ),
        ]
    return Figure(
        title=group.said(finding(ends(group))),
        caption=caption(group.problem, meta) + absent(group.rows, shown),
        description=(
            "Peak bytes over the sequence length N, both logarithmic, one line per backend. A cross"
            " marks a case out of memory, at the height that the formula predicts, or at the budget"
            " where there is no prediction. The table below has every number."
        ),
        panels=(
            Panel(
                x_label="sequence length N (1k = 1024)",
                y_label="peak bytes of a call",
                unit="bytes",
                series=tuple(
                    one for one in series if (one.x if one.kind == "failed" else any(one.y))
                ),
                line=(budget, f"budget {bytes_text(budget)}, inputs included") if budget else None,
            ),
        ),
        table=_table(group),
    )


def _series(
    backend: str,
    kind: Literal["measured", "formula", "failed"],
    points: list[tuple[Row, float | None]],
) -> Series:
    return Series(
        backend=backend,
        kind=kind,
        x=tuple(row["seq_len"] for row, _ in points),
        y=tuple(y for _, y in points),
        cases=tuple(case_key(row) for row, _ in points),
    )


def _table(group: Group) -> Table:
    names = backends(group.rows)
    lines = []
    for n in sorted({row["seq_len"] for row in group.rows}):
        here = {row["backend"]: row for row in group.rows if row["seq_len"] == n}
        inputs = next(
            (row["input_bytes"] for row in here.values() if row.get("input_bytes") is not None),
            None,
        )
        lines.append(
            (
                count_text(n),
                bytes_text(inputs),
                *(_cell(here[name]) if name in here else "" for name in names),
            )
        )
    return Table(
        title="Peak bytes (predicted ones in brackets)",
        columns=("N", "inputs", *names),
        rows=tuple(lines),
    )


def _cell(row: Row) -> str:
    predicted = (
        f" ({bytes_text(row['predicted_peak_bytes'])})"
        if row.get("predicted_peak_bytes") is not None
        else ""
    )
    if row["status"] == "ok":
        return (
            bytes_text(row["peak_bytes"]) if row.get("peak_bytes") is not None else "not measured"
        ) + predicted
    return STATUS_WORDS[row["status"]] + predicted
