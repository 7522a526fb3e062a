"""The memory wall: the longest N that fits, and memory over N, measured and by formula."""

from collections.abc import Sequence
from dataclasses import replace

from ..data.exactness import is_exact
from ..data.row_groups import Group, Row, groups, over_lengths
from ..data.run_meta import Meta
from ..elements import Card, Table, WallChart, table_of
from ..formatting import STATUS_WORDS, bytes_text, length_text, more_below
from ..quantity import Number, Quantity
from . import Subject
from ._memory_card import drawn, ends_text, memory_card, needs_table
from ._memory_over_n import OUT_OF_MEMORY, families, memory_curves, need_bytes, wall_groups
from ._over import n_text

TITLE = "Memory wall"
SECTION = "memory"
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
    shown = found[: MOST_CHARTS + 1] if asked_here else []
    cards = [card for at in range(len(shown)) if (card := memory_card(found[at:], meta))]
    if not found and searched:
        cards = [_searched(searched)]
    lines = [group.prefixed(_found(group.rows)) for group in searched[0 if asked_here else 1 :]]
    if not asked_here:
        lines += [
            group.prefixed(ends_text(memory_curves(group, meta)))
            for group in groups(rows, "seq_len")
            if any(row["status"] in OUT_OF_MEMORY for row in group.rows)
        ]
    on_cards = [group.problem for family in shown or found[:1] for group in drawn(family)]
    left = [
        group
        for group in over_lengths(rows)
        if group.problem not in on_cards and any(map(need_bytes, group.rows))
    ]
    return Subject(
        card=cards[0] if cards else None,
        lines=tuple(f"{line}." for line in lines[:MOST_LINES]),
        blocks=(
            *(one.picture for one in cards[1:] if isinstance(one.picture, WallChart)),
            *([walls(searched)] if searched and (found or len(searched) > 1) else []),
            *([needs_table(left, folded=bool(found))] if left else []),
        ),
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


# ---- a search for the longest N ------------------------------------------------------------------


def _searched(found: Sequence[Group]) -> Card:
    """The longest N that `attnbench wall` found, of the first problem."""
    group = found[0]
    rows = sorted(group.rows, key=lambda row: -(row.get("seq_len_low") or 0))
    return Card(
        title="The wall",
        subtitle=f"longest N that fits{f', {group.label}' if group.label else ''}",
        sentence=f"{_found(group.rows)}.",
        picture=walls([replace(group, rows=rows)]),
        note=more_below(len(found) - 1),
        wide=True,
    )


def walls(found: Sequence[Group]) -> Table:
    return table_of(
        'The longest N that fits: every trial up to "fits up to" succeeded, none from "fails from"'
        " on",
        [(group.label, row) for group in found for row in group.rows],
        {
            "backend": lambda line: line[1]["backend"],
            "problem": lambda line: line[0],
            "fits up to": lambda line: Quantity(line[1].get("seq_len_low"), "length"),
            "fails from": lambda line: Quantity(line[1].get("seq_len_high"), "length"),
            "predicted N": lambda line: Number(_predicted(line[1]) + _off(line[1])),
            "ended by": lambda line: _ended_by(line[1]),
            "note": lambda line: _note_of(line[1]),
        },
        optional=("problem", "predicted N", "note"),
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


def _off(row: Row) -> str:
    """` (+0.25 %)`: by how much; "" unless memory ended the search, and for a bound."""
    predicted, low = row.get("predicted_seq_len"), row.get("seq_len_low")
    if row.get("limited_by") != "memory" or predicted is None or not low or _is_bound(row):
        return ""
    return f" ({100 * (predicted / low - 1):+.2f} %)"


def _ended_by(row: Row) -> str:
    limit = row.get("limited_by")
    if limit is not None:
        return str(LIMITS.get(limit, limit))
    return "" if row["status"] == "ok" else STATUS_WORDS[row["status"]]


def _note_of(row: Row) -> str:
    """Why there are no numbers, what stopped the search, or whether the boundary is not sharp."""
    if row["status"] != "ok":
        return str(row["reason"])
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
