"""The memory wall: the longest N that fits, and memory over N, measured and by formula."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from ..data.exactness import is_exact
from ..data.row_groups import Group, Row
from ..data.run_meta import Meta, caption
from ..elements import Card, Figure, Table, table_of
from ..formatting import (
    STATUS_WORDS,
    bytes_text,
    capital,
    length_text,
    list_text,
    more_below,
    paragraph,
)
from ..quantity import Cell, Number, Quantity
from . import Subject
from ._memory_card import WALL, drawn, memory_card, needs_table
from ._memory_over_n import families, memory_curves, wall_groups
from ._squares import areas_of, whole_gpu

TITLE = "Memory wall"
SECTION = "memory"
ORDER = 10
MOST_CHARTS = 6
MOST_LINES = 3
ENDS = ("seq_len_low", "seq_len_high", "predicted_seq_len")
BUDGETS_S = (60, 300, 1200, 3600)  # that are advised where one was used up

How = Literal["tried", "formula", "at least"]


class Longest(NamedTuple):
    """The answer of one search. `n`: None if nothing is known to fit. `how`: tried on both sides,
    by a formula that no call contradicts, or known to fit while more may.
    """

    backend: str
    n: int | None
    how: How


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found, searched = families(rows), wall_groups(meta)
    asked_here = bool(found) and asked(found[0], meta)
    shown = found[:MOST_CHARTS] if asked_here else []
    cards = [card for at in range(len(shown)) if (card := memory_card(found[at:], meta))]
    apart: list[Figure] = []
    if cards:
        cards[0], apart = _with_areas(cards[0], drawn(found[0]), meta)
    elif searched and not found:
        cards = [_searched(searched, meta)]
    lines = [group.prefixed(_found(group.rows)) for group in searched[0 if asked_here else 1 :]]
    pictures = (one.picture for one in cards[1:])
    return Subject(
        card=cards[0] if cards else None,
        lines=tuple(f"{line}." for line in lines[:MOST_LINES]),
        blocks=(
            *(one for one in pictures if isinstance(one, Figure)),
            *apart,
            *([walls(searched)] if searched and (found or len(searched) > 1) else []),
        ),
        lacking="Nothing to draw over N: every problem has one N, or its bytes are unknown.",
    )


def _with_areas(card: Card, shown: Sequence[Group], meta: Meta) -> tuple[Card, list[Figure]]:
    """Memory as area beside the curve of the most heads, those of others as pictures of their own;
    the card as it is without formulas or a wall.
    """
    card = replace(card, note=paragraph(card.note, whole_gpu(shown[0], meta)))
    areas, picture = areas_of(shown, meta), card.picture
    if areas is None or not isinstance(picture, Figure):
        return card, []
    *rest, most = (replace(picture, panels=(one,)) for one in picture.panels)
    about, table = caption(shown[-1].problem, meta), needs_table(shown[-1:])
    others = [replace(one, title=one.panels[0].title, caption=about, table=table) for one in rest]
    return replace(card, areas=areas, picture=most), others


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


def longest(row: Row) -> Longest:
    low, high, predicted = map(row.get, ENDS)
    backend = row["backend"]
    if low is None or row.get("limited_by") in ("memory", "backend"):
        return Longest(backend, low, "tried")
    possible = predicted is not None and low <= predicted and (high is None or predicted < high)
    if possible and row.get("limited_by") != "length":
        return Longest(backend, predicted, "at least" if _is_bound(row) else "formula")
    return Longest(backend, low, "at least")


def _searched(found: Sequence[Group], meta: Meta) -> Card:
    """The longest N that `attnbench wall` found, of the first problem."""
    group, text = found[0], _found(found[0].rows)
    text = capital(text) if text.startswith("in ") else text
    return Card(
        title=WALL,
        subtitle=f"longest N that fits{f', {group.label}' if group.label else ''}",
        sentence=f"{text}.{_time_used_up(found, meta)}",
        picture=walls([group]),
        note=more_below(len(found) - 1),
        wide=True,
    )


def walls(found: Sequence[Group]) -> Table:
    return table_of(
        "The longest N that fits",
        [(group.label, row) for group in found for row in _longest_first(group.rows)],
        {
            "backend": lambda line: line[1]["backend"],
            "problem": lambda line: line[0],
            "longest N": lambda line: _longest_text(longest(line[1])),
            "by formula": lambda line: _predicted(line[1]),
            "how sure": lambda line: _how_sure(line[1]),
        },
        optional=("problem", "by formula"),
    )


def _longest_first(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: -(longest(row).n or 0))


def _longest_text(found: Longest) -> Number:
    if found.n is None:
        return Number("")
    return Number(f"{'at least ' if found.how == 'at least' else ''}{length_text(found.n)}")


def _found(rows: Sequence[Row]) -> str:
    """`in 4 GiB: sdpa 104 498 tokens by formula, naive 20 779 and fused at least 4 048`: the walls
    of one problem, the longest first.
    """
    ends = [(row, longest(row)) for row in _longest_first(rows)]
    known = [(row, end) for row, end in ends if end.n is not None]
    budgets = {row["memory_bytes"] for row, _ in known}
    where = f"in {bytes_text(budgets.pop())}: " if len(budgets) == 1 else ""
    names = [
        f"{end.backend}\u00a0{_longest_text(end)}{'' if place else ' tokens'}"
        f"{' by formula' if end.how == 'formula' else ''}"
        for place, (_, end) in enumerate(known)
    ]
    others = [
        f"{row['backend']}: {STATUS_WORDS[row['status']]}" for row, end in ends if end.n is None
    ]
    return "; ".join([*([where + list_text(names)] if known else []), *others])


def _predicted(row: Row) -> Cell:
    n = row.get("predicted_seq_len")
    return "" if n is None or _is_bound(row) else Quantity(n, "length")


def _how_sure(row: Row) -> str:
    """What was tried, and what stands against it."""
    low, high, _ = map(row.get, ENDS)
    how, status = longest(row).how, row["status"]
    if low is None:
        return ": ".join(filter(None, [STATUS_WORDS[status], row["reason"]]))
    fails = "" if high is None else f", {length_text(high)} fails"
    failed = (one for one in row["probes"] if one["seq_len"] == high and one["status"] != "oom")
    parts = [
        "by formula" if how == "formula" else "",
        f"tried: {length_text(low)} fits{fails}",
        "" if status == "ok" else f"the search ended early: {STATUS_WORDS[status]}",
        "the backend supports no longer N" if row.get("limited_by") == "length" else "",
        *(one["reason"] for one in failed),
        row.get("predicted_reason") or "",
    ]
    return "; ".join(filter(None, parts))


def _is_bound(row: Row) -> bool:
    """Whether the formula of another dtype or backend stands in: the prediction is a least N."""
    return row.get("predicted_source") == "nearest"


def _time_used_up(found: Sequence[Group], meta: Meta) -> str:
    """` Stopped after 45 s; more: attnbench wall --time-budget 300.`; "" if no search was."""
    spent_s = [
        limit_s
        for group in found
        for row in group.rows
        if row.get("limited_by") == "time"
        and not any(trial["status"] == "timeout" for trial in row["probes"])
        if (limit_s := meta[row["run"]]["scenario"]["limits"].get("wall_budget_s"))
    ]
    if not spent_s:
        return ""
    longer_s = next((one for one in BUDGETS_S if one > 3 * spent_s[0]), 4 * round(spent_s[0]))
    return f" Stopped after {spent_s[0]:g} s; more: attnbench wall --time-budget {longer_s}."
