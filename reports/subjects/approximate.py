"""Approximate attention: how far off each setting is, and its time."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import sqrt
from typing import NamedTuple

from ..data.exactness import NO_INFORMATION_COSINE, carries_nothing
from ..data.processor_time import time_of
from ..data.row_groups import Group, Row, axis_text, backends, by, case_key, groups, is_timed
from ..data.run_meta import Meta, caption
from ..elements import Card, Figure, Table, note, table_of
from ..formatting import capital, list_text, more_below, paragraph, percent_text, rough_percent_text
from ..judging.ratio import Ratio
from ..quantity import Number, Quantity
from . import Subject
from ._over import panel
from ._race import against_fastest

TITLE = "Approximate attention"
SECTION = "asked"
ORDER = 18
BELOW_CLAIMS = True
HOW = (
    "The error is relative L2, the worst of output and gradients, on random inputs and untrained"
    " weights: trained ones may do better. A cosine of 1 is equal but for a factor, of 0 unrelated."
)


class Trade(NamedTuple):
    """One timed row of an approximation, and the fastest exact backend (against_fastest)."""

    row: Row
    against: str
    ratio: Ratio | None

    @property
    def name(self) -> str:
        return str(self.row["backend"])

    @property
    def error(self) -> float:
        """Relative L2; 0 if it was not measured."""
        return float(self.row.get("error_l2_ratio") or 0)

    @property
    def n(self) -> int:
        return int(self.row["seq_len"])


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card is about the longest N of the first problem with an error; what carries no
    information has no place in its picture, only in a note.
    """
    found = [group for group in groups(rows, "seq_len") if any(map(_timed, group.rows))]
    every = [(group, trades(group)) for group in found]
    known = [(group, some) for group, made in every if (some := [one for one in made if one.error])]
    if not known:
        return Subject(lacking="No approximation's error was measured.")
    empties = [group.prefixed(capital(text)) for group in found if (text := emptiness(group))]
    (group, some), n = known[0], max(one.n for one in known[0][1])
    last = [one for one in some if one.n == n]
    drawn = [one for one in last if not carries_nothing(one.row)]
    at, text = axis_text("seq_len", n), group.prefixed(_finding(drawn))
    table = _table(last)
    picture: Figure | Table = table
    if drawn:
        axes = panel(
            replace(group, rows=[one.row for one in drawn], label=""),
            "latency_ms",
            "error_{}l2_ratio",
            x_label=f"latency in ms, at {at}",
            y_label="relative error",
            unit="share",
        )
        of = caption({**group.problem, "seq_len": n}, meta)
        picture = Figure(title=text, caption=of, panels=(axes,), table=table)
    card = Card(
        title="Error against time",
        sentence=f"{text} ({at})." if drawn else f"{capital(text)}.",
        picture=picture,
        subtitle=f"error over latency at {at}",
        note=paragraph(
            "Random inputs and untrained weights: trained ones may do better.",
            capital(emptiness(group)),
            more_below(len(known) - 1),
        ),
    )
    every_table = _table([one for _, some in known for one in some])
    return Subject(card=card, blocks=(note(HOW), *map(note, empties), every_table))


def _finding(made: Sequence[Trade]) -> str:
    """Of each family, the setting with the smallest error: `linformer is off by 8.5 % and takes
    0.75 times (0.57 to 0.98) the time of sdpa`.
    """
    texts = []
    for some in by(made, lambda one: method(one.name)).values():
        one = min(some, key=lambda one: one.error)
        against = f" and takes {one.ratio.text_to(one.against)}" if one.ratio else ""
        texts.append(f"{one.name} is off by {rough_percent_text(one.error)}{against}")
    return "; ".join(texts) or "no approximation's output resembles the exact one"


def method(backend: str) -> str:
    """Without its size: `linformer` of `linformer:64`, `linformer:pool` of `linformer:pool64`."""
    return backend.partition("[")[0].rstrip("0123456789").rstrip(":")


def empty(group: Group) -> list[Row]:
    """The longest timed N of each approximation whose output carries no information there."""
    every = (list(filter(_timed, group.of_backend(name))) for name in backends(group.rows))
    return [mine[-1] for mine in every if mine and carries_nothing(mine[-1])]


def informative(group: Group) -> Group:
    """The group without them: their time is no trade for anything."""
    left_out = set(backends(empty(group)))
    return replace(group, rows=[row for row in group.rows if row["backend"] not in left_out])


def emptiness(group: Group) -> str:
    """Which approximations have no part in a trade-off, and why; "" if all have one."""
    last = empty(group)
    if not last:
        return ""
    largest = max(abs(row["output_cosine"]) for row in last)
    at = axis_text("seq_len", max(row["seq_len"] for row in last))
    return (
        f"no information in {list_text(backends(last))} at {at}: the cosine of their outputs and"
        f" the exact one is at most {largest:.2g} (below {NO_INFORMATION_COSINE:g} counts as none),"
        f" so the best multiple of such an output is off by {percent_text(sqrt(1 - largest**2))} or"
        " more, about as far as zeros are."
    )


def trades(group: Group) -> list[Trade]:
    """By N, then by backend."""
    return [
        Trade(row, *against_fastest(row, here))
        for here in group.by_length.values()
        for row in filter(_timed, here)
    ]


def _timed(row: Row) -> bool:
    return row.get("exactness") == "approximate" and is_timed(row)


def _table(made: Sequence[Trade]) -> Table:
    def measured(value: float | None, text: Callable[[float], str]) -> str:
        return "not measured" if value is None else Number(text(value))

    return table_of(
        "Error and time of approximations",
        made,
        {
            "N": lambda one: Quantity(one.n, "length"),
            "backend": lambda one: one.name,
            "error": lambda one: measured(one.row.get("error_l2_ratio"), rough_percent_text),
            "cosine": lambda one: measured(one.row.get("output_cosine"), "{:.2f}".format),
            "time": lambda one: time_of(one.row),
            "over the fastest exact": lambda one: (
                f"{one.ratio.marked}, {one.against}" if one.ratio else ""
            ),
        },
        case=lambda one: case_key(one.row),
    )
