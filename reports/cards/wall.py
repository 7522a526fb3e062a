"""Where memory ends, for scenarios that ask it: the longest N that fits, per backend."""

import pandas as pd

from ..analysis import max_seq_len
from ..analysis.memory_curves import families, memory_curves
from ..data.exactness import is_exact
from ..data.row_groups import Group, Row, records
from ..data.run_meta import Meta
from ..elements import Card, Table
from ..formatting import STATUS_WORDS, length_text, plural
from ._memory_over_n import memory_card

ORDER = 10


def card(frame: pd.DataFrame, meta: Meta) -> Card | None:
    found = families(records(frame))
    if found and asked(found[0], meta):
        return memory_card(found, meta, "wall")
    return None if found else _searched(meta)


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


def _searched(meta: Meta) -> Card | None:
    """The longest N that `attnbench wall` found, of the first problem."""
    found = max_seq_len.wall_groups(meta)
    if not found:
        return None
    group = found[0]
    rows = sorted(group.rows, key=lambda row: -(row.get("seq_len_low") or 0))
    return Card(
        name="wall",
        title="The wall",
        subtitle=f"longest N that fits{f', {group.label}' if group.label else ''}",
        sentence=f"{max_seq_len.finding(group.rows)}.",
        picture=Table(
            title="The longest N that fits",
            columns=("backend", "fits up to", "fails from", "predicted N", "ended by"),
            rows=tuple(_search_cells(row) for row in rows),
        ),
        note=f"{plural(len(found) - 1, 'more problem')} below." if len(found) > 1 else "",
    )


def _search_cells(row: Row) -> tuple[str, ...]:
    lengths = (row.get(name) for name in ("seq_len_low", "seq_len_high", "predicted_seq_len"))
    limit = row.get("limited_by")
    ended = STATUS_WORDS[row["status"]] if limit is None else max_seq_len.LIMITS.get(limit, limit)
    return (row["backend"], *("" if n is None else length_text(n) for n in lengths), ended)
