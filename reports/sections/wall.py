"""The memory wall: the longest N that fits, and peak bytes over N, measured and by formula."""

from collections.abc import Iterable, Iterator
from typing import Literal

import pandas as pd

from ..analysis.max_seq_len import LIMITS, is_bound, off_ratio, wall_groups
from ..analysis.max_seq_len import finding as wall_finding
from ..analysis.max_seq_len import note as wall_note
from ..analysis.missing_points import missing_points
from ..analysis.wall import OUT_OF_MEMORY, finding, memory_ends
from ..data.row_groups import Group, Row, backends, case_key, over_lengths, records
from ..data.run_meta import Meta, budget_bytes, caption
from ..elements import Block, Figure, Series, Table, Text, note
from ..formatting import STATUS_WORDS, bytes_text, count_text, plural
from ..subjects._over_n import multiples, not_drawn, panel

TITLE = "Memory wall"
ORDER = 20
NEEDS = ("peak_bytes", "predicted_peak_bytes", "input_bytes")
MOST_FIGURES = 8
LENGTHS = ("predicted N", "fits up to", "fails from")


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    over_n = over_lengths(records(frame))
    drawn = [group for group in over_n if any(_height(row, None) is not None for row in group.rows)]
    yield from _found(meta)
    if not drawn and not (frame.empty and wall_groups(meta)):
        why = (
            "no bytes were measured or predicted"
            if over_n
            else "no problem was planned at more than one N"
        )
        yield note(f"There is nothing to draw over N: {why}.")
    if not drawn:
        return
    yield note(
        "Peak bytes are what a call needs in addition to its inputs and weights, output included."
        " Lines include what a backend keeps between calls or clearly takes outside torch's"
        " allocator. Inputs count against the budget too, so a case can fail a little below the"
        " line."
    )
    figures = [(group, _figure(group, meta)) for group in drawn[:MOST_FIGURES]]
    yield from multiples(figures, f"Peak bytes of {plural(len(drawn), 'problem')}")
    yield from not_drawn(drawn[MOST_FIGURES:])


def _found(meta: Meta) -> Iterator[Block]:
    """The result of the search for the longest N."""
    found = wall_groups(meta)
    for group in found[:MOST_FIGURES]:
        yield Text(text=f"{group.prefixed(wall_finding(group.rows))}.")
    if found:
        yield Table(
            title=(
                'The longest N that fits: every trial up to "fits up to" succeeded, none from'
                ' "fails from" on'
            ),
            columns=("backend", "problem", *LENGTHS, "prediction is off by", "ended by", "note"),
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
        *_lengths(lengths, bound=is_bound(row)),
        off_text,
        ended_by,
        wall_note(row),
    )


def _lengths(lengths: Iterable[int | None], *, bound: bool) -> Iterator[str]:
    """The predicted N first, which may be a bound."""
    for place, n in enumerate(lengths):
        least = "\u2265 " if bound and place == 0 else ""
        yield "" if n is None else f"{least}{n}"


def _height(row: Row, budget: float | None) -> float | None:
    """A row's bytes in the figure: measured, else predicted, else the budget."""
    if row["status"] == "ok":
        return row.get("needed_bytes") or None
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
        rows = group.of_backend(backend)
        failed = [row for row in rows if row["status"] in OUT_OF_MEMORY]
        predicted = [row.get("predicted_peak_bytes") or None for row in rows]
        measured = [_height(row, budget) if row["status"] == "ok" else None for row in rows]
        series += [
            _series(backend, "formula", rows, predicted),
            _series(backend, "measured", rows, measured),
            _series(backend, "failed", failed, [_height(row, budget) for row in failed]),
        ]
    drawn = [one for one in series if (one.x if one.kind == "failed" else any(one.y))]
    line = (budget, f"budget {bytes_text(budget)}, inputs included") if budget else None
    return Figure(
        title=group.prefixed(finding(memory_ends(group))),
        caption=caption(group.problem, meta) + missing_points(group.rows, shown),
        description=(
            "Peak bytes over the sequence length N, both logarithmic, one line per backend. A cross"
            " marks a case out of memory, at its predicted bytes, or at the budget without a"
            " prediction. The table below has every number."
        ),
        panels=(panel("peak bytes of a call", "bytes", drawn, line=line),),
        table=_table(group),
    )


def _series(
    backend: str,
    kind: Literal["measured", "formula", "failed"],
    rows: list[Row],
    y: list[float | None],
) -> Series:
    return Series(
        backend=backend,
        kind=kind,
        x=tuple(row["seq_len"] for row in rows),
        y=tuple(y),
        cases=tuple(map(case_key, rows)),
    )


def _table(group: Group) -> Table:
    names = backends(group.rows)
    lines = []
    for n in group.lengths:
        here = {row["backend"]: row for row in group.rows if row["seq_len"] == n}
        known = (row.get("input_bytes") for row in here.values())
        inputs = next((size for size in known if size is not None), None)
        cells = (_cell(here[name]) if name in here else "" for name in names)
        lines.append((count_text(n), bytes_text(inputs), *cells))
    return Table(
        title="Peak bytes (predictions in brackets)",
        columns=("N", "inputs", *names),
        rows=tuple(lines),
    )


def _cell(row: Row) -> str:
    known = row.get("predicted_peak_bytes") is not None
    predicted = f" ({bytes_text(row['predicted_peak_bytes'])})" if known else ""
    if row["status"] != "ok":
        return STATUS_WORDS[row["status"]] + predicted
    measured = bytes_text(row.get("peak_bytes")) or "not measured"
    beside = (row.get("needed_bytes") or 0) - (row.get("peak_bytes") or 0)
    return measured + (f" and {bytes_text(beside)} beside it" if beside else "") + predicted
