"""The memory wall: the longest N that fits, and memory over N, measured and by formula."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..data.exactness import is_exact
from ..data.row_groups import Group, Row, case_key, groups, over_lengths
from ..data.run_meta import Meta
from ..elements import Card, Marked, Table, WallChart, table_of
from ..formatting import (
    STATUS_WORDS,
    bytes_text,
    length_text,
    plural,
)
from ..quantity import Cell, Number, Quantity
from . import Subject
from ._memory_card import ends_text, memory_card
from ._memory_over_n import OUT_OF_MEMORY, families, memory_curves, wall_groups
from ._over import by_backend, lines_over, n_text

TITLE = "Memory wall"
ORDER = 10
NEEDS = ("peak_bytes", "predicted_peak_bytes", "input_bytes")
MOST_CHARTS = 6
MOST_LINES = 3
LIMITS = {
    "memory": "memory",
    "time": "time limit",
    "length": "largest supported N",
    "backend": "backend itself",
}


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found, searched = families(rows), wall_groups(meta)
    asked_here = bool(found) and asked(found[0], meta)
    card = memory_card(found, meta, "wall") if asked_here else None
    if not found and searched:
        card = _searched(searched)
    over_n = over_lengths(rows)
    lines = [group.prefixed(_found(group.rows)) for group in searched[0 if asked_here else 1 :]]
    if not asked_here:
        lines += [
            group.prefixed(ends_text(memory_curves(group, meta)))
            for group in groups(rows, "seq_len")
            if any(row["status"] in OUT_OF_MEMORY for row in group.rows)
        ]
    others = (memory_card([family], meta, "wall") for family in found[1 : MOST_CHARTS + 1])
    charts = [
        one.picture for one in others if one and asked_here and isinstance(one.picture, WallChart)
    ]
    every = 'every trial up to "fits up to" succeeded, none from "fails from" on'
    tables = [_walls(f"The longest N that fits: {every}", searched, TRIALS)] if searched else []
    known = [group for group in over_n if any(map(_has_bytes, group.rows))]
    tables += [_peaks(known, folded=bool(found))] if known else []
    return Subject(
        card=card,
        lines=tuple(f"{line}." for line in lines[:MOST_LINES]),
        blocks=(*charts, *tables),
        lacking="There is nothing to draw over N: no problem was planned at more than one N, or no"
        " bytes were measured or predicted.",
    )


def asked(family: dict[int, Group], meta: Meta) -> bool:
    """Whether these runs are about the wall.

    Dense exact attention over N, and a backend that reaches the budget or nothing else to compare.
    What is measured against dense attention (sparse, approximate) is asked from which N on it wins.
    """
    rows = [row for group in family.values() for row in group.rows]
    dense = all(is_exact(row) and row.get("mask") in (None, "none") for row in rows)
    scenario = meta[rows[0]["run"]]["scenario"]
    return dense and (
        not scenario.get("contrast")
        or any(curve.stops for group in family.values() for curve in memory_curves(group, meta))
    )


def _has_bytes(row: Row) -> bool:
    return bool(row.get("needed_bytes") or row.get("predicted_peak_bytes"))


def _peaks(found: Sequence[Group], *, folded: bool) -> Table:
    """Every peak over N, without the inputs that the chart includes."""
    heads, lines = lines_over(found, "seq_len")

    def inputs(rows: Sequence[Row]) -> Cell:
        known = (row.get("input_bytes") for row in rows)
        return Quantity(next((size for size in known if size is not None), None), "bytes")

    return by_backend(
        "Peak bytes of a call, without inputs and weights (predictions in brackets)",
        (*heads, "inputs"),
        [((*cells, inputs(rows)), rows) for cells, rows in lines],
        lambda row, _: _peak(row),
        folded=folded,
    )


def _peak(row: Row) -> Marked:
    known = row.get("predicted_peak_bytes") is not None
    predicted = f" ({bytes_text(row['predicted_peak_bytes'])})" if known else ""
    beside = (row.get("needed_bytes") or 0) - (row.get("peak_bytes") or 0)
    text = bytes_text(row.get("peak_bytes")) or "not measured"
    text += f" and {bytes_text(beside)} beside it" if beside else ""
    if row["status"] != "ok":
        text = STATUS_WORDS[row["status"]]
    return Marked(cell=Number(text + predicted), case=case_key(row))


# ---- a search for the longest N ------------------------------------------------------------------


def _searched(found: Sequence[Group]) -> Card:
    """The longest N that `attnbench wall` found, of the first problem."""
    group = found[0]
    rows = sorted(group.rows, key=lambda row: -(row.get("seq_len_low") or 0))
    return Card(
        title="The wall",
        subtitle=f"longest N that fits{f', {group.label}' if group.label else ''}",
        sentence=f"{_found(group.rows)}.",
        picture=_walls("The longest N that fits", [replace(group, rows=rows)], FOUND),
        note=f"{plural(len(found) - 1, 'more problem')} below." if len(found) > 1 else "",
    )


def _walls(title: str, found: Sequence[Group], columns: Sequence[str]) -> Table:
    lines = [(group.label, row) for group in found for row in group.rows]
    cells: dict[str, Callable[[Row], Cell]] = {
        "backend": lambda row: row["backend"],
        "fits up to": lambda row: Quantity(row.get("seq_len_low"), "length"),
        "fails from": lambda row: Quantity(row.get("seq_len_high"), "length"),
        "predicted N": _predicted,
        "prediction is off by": lambda row: (
            "" if (off := _off_ratio(row)) is None else Number(f"{100 * off:+.2f} %")
        ),
        "ended by": _ended_by,
        "note": _note_of,
    }

    def made(cell: Callable[[Row], Cell]) -> Callable[[tuple[str, Row]], Cell]:
        return lambda line: cell(line[1])

    every: dict[str, Callable[[tuple[str, Row]], Cell]] = {"problem": lambda line: line[0]}
    every |= {name: made(cell) for name, cell in cells.items()}
    return table_of(title, lines, {name: every[name] for name in columns})


FOUND = ("backend", "fits up to", "fails from", "predicted N", "ended by")
TRIALS = (
    *("backend", "problem", "predicted N", "fits up to", "fails from"),
    *("prediction is off by", "ended by", "note"),
)


def _found(rows: Sequence[Row]) -> str:
    """One sentence on the walls of one problem, the longest N first."""
    found = sorted(
        (row for row in rows if row.get("seq_len_low")), key=lambda row: -row["seq_len_low"]
    )
    parts = [_found_text(row) for row in found]
    parts += [
        f"{row['backend']}: {STATUS_WORDS[row['status']]}" for row in rows if row not in found
    ]
    budgets = {row["memory_bytes"] for row in found}
    return "; ".join(parts) + (f", under {bytes_text(budgets.pop())}" if len(budgets) == 1 else "")


def _found_text(row: Row) -> str:
    limit, predicted = row["limited_by"], _predicted(row).replace("≥", "at least")
    remarks = [f"predicted {predicted}"] if predicted else []
    if limit is None:  # the search did not come to its end
        remarks.append(f"search ended early: {STATUS_WORDS.get(row['status'], row['status'])}")
    elif limit != "memory":
        remarks.append(f"ended by the {LIMITS.get(limit, limit)}")
    verb = "was tried up to" if limit == "time" else "fits up to"
    text = f"{row['backend']} {verb} {n_text(row['seq_len_low'])}"
    return f"{text} ({', '.join(remarks)})" if remarks else text


def _is_bound(row: Row) -> bool:
    """Whether the formula of another dtype or backend stands in: the prediction is a least N."""
    return row.get("predicted_source") == "nearest"


def _predicted(row: Row) -> str:
    n = row.get("predicted_seq_len")
    return "" if n is None else Number(f"{'≥ ' if _is_bound(row) else ''}{length_text(n)}")


def _off_ratio(row: Row) -> float | None:
    """Predicted over found N, minus 1; None unless memory ended the search, and for a bound."""
    predicted, low = row.get("predicted_seq_len"), row.get("seq_len_low")
    if row.get("limited_by") != "memory" or predicted is None or not low or _is_bound(row):
        return None
    return float(predicted / low - 1)


def _ended_by(row: Row) -> str:
    limit = row.get("limited_by")
    if limit is not None:
        return str(LIMITS.get(limit, limit))
    return "" if row["status"] == "ok" else STATUS_WORDS[row["status"]]


def _note_of(row: Row) -> str:
    """Why there are no numbers, what stopped the search, or whether the boundary is not sharp."""
    if row["status"] != "ok":
        return f"{STATUS_WORDS[row['status']]}: {row['reason']}"
    notes = []
    fits = [trial["seq_len"] for trial in row["probes"] if trial["status"] == "ok"]
    if max(fits, default=0) > (row.get("seq_len_low") or 0):
        notes.append("some longer N fitted too: the boundary is not sharp")
    if row["limited_by"] == "backend":
        at_end = (one for one in row["probes"] if one["seq_len"] == row.get("seq_len_high"))
        notes += [one["reason"] for one in at_end][:1]
    if row["limited_by"] == "time":
        notes.append("more time: attnbench wall --budget, --timeout")
    return "; ".join([*notes, *filter(None, [row.get("predicted_reason")])])
