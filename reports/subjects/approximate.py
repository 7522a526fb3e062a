"""Approximate attention: how far off each setting is, and its time."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import sqrt
from typing import NamedTuple

from ..data.exactness import NO_INFORMATION_COSINE, carries_nothing
from ..data.processor_time import time_of
from ..data.row_groups import Group, Row, axis_text, backends, by, case_key, groups, is_timed
from ..data.run_meta import Meta, caption
from ..elements import Block, Card, Figure, Table, note, table_of
from ..formatting import capital, list_text, more_below, paragraph, percent_text, rough_percent_text
from ..judging.ratio import Ratio
from ..quantity import Cell, Number, Quantity
from . import Subject
from ._over import panel
from ._race import against_fastest

TITLE = "Approximate attention"
SECTION = "asked"
ORDER = 18
BELOW_CLAIMS = True
HOW = (
    "The error is the distance from exact attention over its size (relative L2, the worst of"
    " output and gradients), on random inputs and untrained weights: trained ones may do better."
    " The cosine is that of the angle between the output and the exact one: 1 is equal but for a"
    " factor, 0 has nothing in common with it."
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
    made = [(group, trades(group)) for group in found]
    known = [
        (group, some) for group, every in made if (some := [one for one in every if one.error])
    ]
    empties = [group.prefixed(capital(text)) for group in found if (text := emptiness(group))]
    every = [one for _, some in made for one in some]
    blocks: tuple[Block, ...] = ()
    if every:
        blocks = (note(HOW), *map(note, empties), _table(every))
    lacking = "No backend that approximates attention was timed."
    if not known:
        return Subject(blocks=blocks, lacking=lacking)
    (group, some), n = known[0], max(one.n for one in known[0][1])
    at, last = axis_text("seq_len", n), [one for one in some if one.n == n]
    drawn = [one for one in last if not carries_nothing(one.row)]
    text = capital(group.prefixed(f"at {at} {_finding(drawn)}"))
    table = _table(last, NOT_ON_CARDS)
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
    how = "Random inputs and untrained weights: trained ones may do better."
    card = Card(
        title="Error against time",
        sentence=f"{text}.",
        picture=picture,
        subtitle=f"error over latency at {at}",
        note=paragraph(how, capital(emptiness(group)), more_below(len(known) - 1)),
    )
    return Subject(card=card, blocks=blocks)


def _finding(made: Sequence[Trade]) -> str:
    """Of each family, the setting with the smallest error."""
    texts = []
    for some in by(made, lambda one: method(one.name)).values():
        one = min(some, key=lambda one: one.error)
        against = f" and takes {one.ratio.text_to(one.against)}" if one.ratio else ""
        texts.append(f"{one.name} is off by {rough_percent_text(one.error)}{against}")
    return "; ".join(texts) or (
        "no approximation's output has anything in common with the exact one"
    )


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
    names = backends(last)
    largest = max(abs(row["output_cosine"]) for row in last)
    left = percent_text(sqrt(1 - largest**2))
    at = axis_text("seq_len", max(row["seq_len"] for row in last))
    return (
        f"no trade-off is drawn for {list_text(names)}: at {at} the cosine of their outputs and the"
        f" exact one is at most {largest:.2g} (below {NO_INFORMATION_COSINE:g} counts as none)."
        f" Even the best multiple of such an output is off by {left} of the exact one's size or"
        f" more, about as far as zeros are, so that the time saved buys nothing."
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


def _measured(value: float | None, text: Callable[[float], str]) -> str:
    return "not measured" if value is None else Number(text(value))


COLUMNS: dict[str, Callable[[Trade], Cell]] = {
    "N": lambda one: Quantity(one.n, "count"),
    "backend": lambda one: one.name,
    "error": lambda one: _measured(one.row.get("error_l2_ratio"), rough_percent_text),
    "cosine": lambda one: _measured(one.row.get("output_cosine"), "{:.2f}".format),
    "time": lambda one: time_of(one.row),
    "time over the fastest exact backend": lambda one: (
        f"{one.against}: {one.ratio.text}" if one.ratio else ""
    ),
    "peak bytes": lambda one: Quantity(one.row.get("peak_bytes"), "bytes"),
}
NOT_ON_CARDS = ("N", "cosine", "peak bytes")


def _table(made: Sequence[Trade], without: Sequence[str] = ()) -> Table:
    columns = {name: cell for name, cell in COLUMNS.items() if name not in without}
    title = "Error and time of approximations"
    return table_of(title, made, columns, case=lambda one: case_key(one.row))
