"""Published cells as tables: in the terminal, on the page, and beside a run by ratios alone."""

from collections.abc import Iterable, Sequence
from typing import Any

from ...harness.published.names import Convention
from ...harness.published.nearest import Nearest
from ...harness.published.tables import (
    Cell,
    Source,
    achieved,
    impossible,
    names,
    read,
    refuted,
    sheet_share,
    wrong_peak,
)
from ...harness.rows.model import AXES
from ..data.row_groups import Row
from ..elements import Marked, Table, table_of
from ..formatting import count_text, json_fields, length_text, plural
from ..quantity import Cell as Shown
from ..quantity import Quantity, Unit

FEW = 12  # characters of unequal lengths
NOT_OURS = "Somebody else's measurement, not checked by us: no intervals, no verdicts."
SHAPE = ("batch", "seq_len", "kv_seq_len", "heads", "kv_heads", "d_k", "dtype", "causal")
CONVENTIONS = {
    "2": "the backward pass counted as 2 forward passes, as in our rows",
    "2.5": "the backward pass counted as 2.5 forward passes: scores computed again, as the"
    " FlashAttention papers and cudnn-frontend count",
}


def sources() -> Table:
    """What there is."""
    return table_of(
        "Published tables. " + NOT_OURS,
        [read(name) for name in names()],
        {
            "table": lambda one: one.name,
            "device": lambda one: one.device,
            "cells": lambda one: Quantity(len(one.cells), "count"),
            "what": lambda one: one.about.get("title", ""),
        },
    )


def origin(source: Source) -> str:
    """Where a table comes from, in a sentence."""
    about = source.about
    parts = [about["source"], about.get("date", ""), about.get("url", "")]
    licence = f"Licence: {about['licence']}." if "licence" in about else ""
    how = f"How: {about['how']}." if "how" in about else ""
    left = f"{plural(source.left_out, 'row')} left out: no problem of ours." * bool(source.left_out)
    return " ".join(filter(None, [", ".join(filter(None, parts)) + ".", licence, how, left]))


def tables_of(source: Source, convention: Convention) -> list[Table]:
    """Every cell: methods by N where that is how it is printed, else a row each."""
    if not all(one.column.isdigit() for one in source.cells):
        return [_cells(source, convention)]
    found: dict[tuple[str, str], dict[str, list[Cell]]] = {}
    for cell in source.cells:
        found.setdefault((cell.table, cell.shape.passes), {}).setdefault(cell.method, []).append(
            cell
        )
    return [
        Table(
            title=f"{table}, {passes}. {source.device}. {NOT_OURS}",
            columns=("", *(length_text(int(one.column)) for one in next(iter(rows.values())))),
            rows=tuple((method, *map(_printed, cells)) for method, cells in rows.items()),
        )
        for (table, passes), rows in found.items()
    ]


def _printed(cell: Cell) -> Shown | Marked:
    if cell.status != "ok":
        return Marked(
            cell={"oom": "oom", "unsupported": "none"}.get(cell.status, "failed"), failed=True
        )
    return Quantity(cell.ms, "ms") if cell.ms is not None else Quantity(cell.peak_bytes, "bytes")


def _cells(source: Source, convention: Convention) -> Table:
    return table_of(
        f"{source.about.get('title', source.name)}, {source.device}. {NOT_OURS} TFLOP/s: ours,"
        f" {CONVENTIONS[convention]}",
        source.cells,
        {
            "line": lambda one: one.row,
            "method": lambda one: one.method,
            "shape": shape_text,
            "passes": lambda one: one.problem.passes if one.problem else "",
            "time": lambda one: _printed(one) if one.problem else "",
            "its TFLOP/s": lambda one: Quantity(one.tflops),
            "TFLOP/s": lambda one: _known(achieved(one, convention), "plain"),
            "of peak": lambda one: _known(sheet_share(one, source.sheet, convention), "share"),
            "remark": lambda one: remark(one, source.sheet),
        },
        optional=("passes", "time", "TFLOP/s", "of peak", "remark"),
    )


def remark(cell: Cell, sheet: str) -> str:
    return cell.reason or impossible(cell, sheet) or wrong_peak(cell, sheet)


def _known(value: float | None, unit: Unit) -> Shown:
    return "" if value is None else Quantity(value, unit)


def shape_text(cell: Cell, *, with_n: bool = True) -> str:
    """`b16 N1k h8 d64 fp16, dropout`."""
    p = cell.problem
    if p is None:
        return cell.also
    heads = f"h{p.heads}" if p.heads == p.kv_heads else f"h{p.heads}/{p.kv_heads}"
    words = [f"b{p.batch}", *([f"N{count_text(p.kv_seq_len)}"] if with_n else [])]
    if p.lengths:
        words = [p.lengths if len(p.lengths) <= FEW else f"{p.lengths[:FEW]}..."]
    words += [heads, f"d{p.d_k}", p.dtype, *(["decode"] if p.seq_len == 1 else [])]
    words += ["causal"] if p.causal and p.seq_len > 1 else []
    return ", ".join(filter(None, [" ".join(words), cell.also]))


def impossible_cells() -> Table:
    """Published numbers that cannot be right as they stand."""
    return table_of(
        "Above what the device can do",
        list(refuted()),
        {
            "where": lambda one: f"{one[1].table}:{one[1].row}",
            "device": lambda one: one[0].device,
            "method": lambda one: one[1].method,
            "shape": lambda one: shape_text(one[1]),
            "published": lambda one: _claim(one[1]),
            "why not": lambda one: one[2],
        },
    )


def _claim(cell: Cell) -> str:
    if cell.share_percent is not None:
        return f"{cell.share_percent:.1f} % of the bandwidth"
    return f"{cell.tflops:.0f} TFLOP/s" if cell.tflops else f"{cell.ms:g} ms"


def beside(source: Source, rows: Sequence[Row]) -> Table:
    """Of every shape that both have: our time and bytes over theirs, without a verdict."""
    return table_of(
        f"This run over {source.name} ({source.device}), ratios only. {NOT_OURS}",
        list(_pairs(source.cells, rows)),
        {
            "shape": lambda pair: shape_text(pair[0]),
            "passes": lambda pair: pair[0].shape.passes,
            "published": lambda pair: pair[0].method,
            "ours": lambda pair: pair[1]["backend"],
            "device": lambda pair: pair[1].get("device") or "",
            "time": lambda pair: _known(_times(pair[0], pair[1]), "ratio"),
            "memory": lambda pair: _known(_bytes(pair[0], pair[1]), "ratio"),
        },
        optional=("time", "memory"),
    )


def _pairs(cells: Iterable[Cell], rows: Sequence[Row]) -> Iterable[tuple[Cell, Row]]:
    for cell in cells:
        for row in rows:
            alike = cell.status == row["status"] == "ok" and cell.exact and same_shape(cell, row)
            if alike and (_times(cell, row) or _bytes(cell, row)):
                yield cell, row


def _times(cell: Cell, row: Row) -> float | None:
    """None beside a CPU, whose time says nothing about a GPU's."""
    return None if row["device"] == "cpu" else _ratio(row.get("latency_ms"), cell.ms)


def _bytes(cell: Cell, row: Row) -> float | None:
    return _ratio(whole_bytes(row), cell.peak_bytes)


def same_shape(cell: Cell, row: Row) -> bool:
    """In every axis of a problem; and ours has neither dropout nor a mask of padding."""
    p = cell.problem
    if p is None or cell.also:
        return False
    return all(row.get(name) in (None, getattr(p, name)) for name in AXES)


def _ratio(ours: float | None, theirs: float | None) -> float | None:
    return ours / theirs if ours and theirs else None


def whole_bytes(row: Row) -> float | None:
    """Inputs and peak, as the paper's memory table counts."""
    peak, inputs = row.get("peak_bytes"), row.get("input_bytes")
    return None if peak is None or inputs is None else float(peak + inputs)


def nearest_table(found: Sequence[Nearest], model: str, device: str) -> Table:
    """The nearest published shapes to those of a model; nothing is scaled from one to the other."""
    return table_of(
        f"{model}: the nearest shapes that others published for {device}. {NOT_OURS} Times are of"
        " their shapes, not of the model's.",
        found,
        {
            "phase": lambda one: one.asked.phase,
            "published": lambda one: shape_text(one.cell),
            "method": lambda one: one.cell.method,
            "time": lambda one: Quantity(one.cell.ms, "ms"),
            "TFLOP/s": lambda one: _known(achieved(one.cell, "2"), "plain"),
            "GB/s": lambda one: _known(one.cell.gb_per_s, "plain"),
            "not as asked": lambda one: one.differs,
        },
        optional=("GB/s",),
    )


def nearest_rows(found: Sequence[Nearest]) -> list[dict[str, Any]]:
    """The same for --json; harness/advise/documents.py has their type."""
    return [
        {
            "phase": one.asked.phase,
            "layer": one.asked.layer.text(),
            "device": one.source.device,
            "table": one.source.name,
            "url": one.source.about["url"],
            **json_fields(one.cell, "row", "method", "ms", "gb_per_s"),
            "tflops": achieved(one.cell, "2"),
            "shape": {name: getattr(one.cell.shape, name) for name in SHAPE},
            "not_as_asked": one.differs or None,
        }
        for one in found
    ]
