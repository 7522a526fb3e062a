"""Approximate attention: how far off each setting is, over its size, N and its time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import sqrt
from typing import NamedTuple

from ..data.exactness import NO_INFORMATION_COSINE, carries_nothing
from ..data.processor_time import time_of
from ..data.row_groups import Group, Row, axis_text, backends, by, case_key, groups, is_timed
from ..data.run_meta import Meta, caption
from ..elements import Block, Card, Figure, Panel, Table, note, table_of
from ..formatting import capital, list_text, more_below, paragraph, percent_text, rough_percent_text
from ..judging.ratio import Ratio
from ..quantity import Cell, Number, Quantity
from . import Subject
from ._over import not_drawn, panel
from ._race import against_fastest

TITLE = "Approximate attention"
SECTION = "asked"
ORDER = 18
NEEDS = ("exactness", "error_l2_ratio", "latency_ms")
BELOW_CLAIMS = True
MOST_FIGURES = 4
SIZES = ("rank", "features")  # names of an approximation's size in a row's configuration


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
    found = [group for group in groups(rows, "seq_len") if any(map(_timed, group.rows))]
    if not found:
        return Subject(lacking="No backend that approximates attention was timed.")
    made = [(group, trades(group)) for group in found]
    known = [(group, some) for group, every in made if (some := _with_error(every))]
    how = note(
        "The error is the distance from exact attention over its size (relative L2, the worst of"
        " output and gradients), on random inputs and untrained weights. Trained weights may do"
        " better. The cosine is that of the angle between the output and the exact one, over all"
        " rows that are checked: 1 is equal but for a factor, 0 has nothing in common with it."
    )
    details = [block for one in made[:MOST_FIGURES] for block in _of_problem(*one, meta)]
    return Subject(
        card=_card(*known[0], more=len(known) - 1, meta=meta) if known else None,
        blocks=(how, *details, *not_drawn(found[MOST_FIGURES:])),
    )


def _with_error(every: Sequence[Trade]) -> list[Trade]:
    return [one for one in every if one.error]


def _card(group: Group, every: Sequence[Trade], *, more: int, meta: Meta) -> Card:
    """At the longest N with an error, of the first problem."""
    longest, made = _at_longest(every)
    at = axis_text("seq_len", longest)
    # A setting that carries no information has no place in the picture, only in the note.
    drawn = [one for one in made if not carries_nothing(one.row)]
    text, table = capital(_finding_at(group, longest, drawn)), _table(made, NOT_ON_CARDS)
    panel = _panel(group, [one.row for one in drawn], "latency_ms", f"latency in ms, at {at}")
    of = caption({**group.problem, "seq_len": longest}, meta)
    how = "Random inputs and untrained weights: trained ones may do better."
    return Card(
        title="Error against time",
        sentence=f"{text}.",
        picture=Figure(title=text, caption=of, panels=(panel,), table=table) if drawn else table,
        subtitle=f"error over latency at {at}",
        note=paragraph(how, capital(emptiness(group)), more_below(more)),
    )


def _at_longest(every: Sequence[Trade]) -> tuple[int, list[Trade]]:
    longest = max(one.n for one in every)
    return longest, [one for one in every if one.n == longest]


def _finding_at(group: Group, n: int, made: Sequence[Trade]) -> str:
    """Of each family, the setting with the smallest error."""
    texts = []
    for some in by(made, lambda one: method(one.name)).values():
        one = min(some, key=lambda one: one.error)
        against = f" and takes {one.ratio.text_to(one.against)}" if one.ratio else ""
        texts.append(f"{one.name} is off by {rough_percent_text(one.error)}{against}")
    nothing = "no approximation's output has anything in common with the exact one"
    return group.prefixed(f"at {axis_text('seq_len', n)} {'; '.join(texts) or nothing}")


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
    untrained = (
        " Linformer's linear projections are made to be learnt; drawn at random, they add up values"
        " with random signs. Mean pooling (linformer:pool64) needs no training."
        if any(method(name) == "linformer" for name in names)
        else ""
    )
    return (
        f"no trade-off is drawn for {list_text(names)}: at {at} the cosine of their outputs and the"
        f" exact one is at most {largest:.2g} (below {NO_INFORMATION_COSINE:g} counts as none)."
        f" Even the best multiple of such an output is off by {left} of the exact one's size or"
        f" more, about as far as zeros are, so that the time saved buys nothing.{untrained}"
    )


def trades(group: Group) -> list[Trade]:
    """By N, then by backend."""
    return [
        Trade(row, *against_fastest(row, here))
        for here in group.by_length.values()
        for row in filter(_timed, here)
    ]


def size(row: Row) -> int | None:
    """Its rank or number of features, or another number that its name gives."""
    known = {**(row.get("parameters") or {}), **(row.get("configuration") or {})}
    sizes = (known.get(name) for name in (*SIZES, *(row.get("parameters") or {})))
    return next((value for value in sizes if type(value) is int), None)


def _timed(row: Row) -> bool:
    return row.get("exactness") == "approximate" and is_timed(row)


def _of_problem(group: Group, made: Sequence[Trade], meta: Meta) -> Iterator[Block]:
    if (known := _with_error(made)) and (drawn := tuple(_errors(group, known))):
        yield Figure(
            title=capital(_finding_at(group, *_at_longest(known))),
            caption=caption(group.problem, meta),
            panels=drawn,
            table=_table(made),
        )
    if text := emptiness(group):
        yield note(group.prefixed(capital(text)))


def _errors(group: Group, known: Sequence[Trade]) -> Iterator[Panel]:
    """Over the size, if a family has several sizes at the longest N; and over N."""
    longest, last = _at_longest(known)
    sized = (one for one in last if size(one.row) is not None)
    families = by(sized, lambda one: method(one.name))
    if any(len(of) > 1 for of in families.values()):
        over_size = [
            one.row | {"backend": _drawn_as(family, of), "size": size(one.row)}
            for family, of in families.items()
            for one in of
        ]
        label = f"{' or '.join(SIZES)}, at {axis_text('seq_len', longest)}"
        yield _panel(group, over_size, "size", label)
    if len({one.n for one in known}) > 1:
        yield _panel(group, [one.row for one in known], "seq_len")


def _drawn_as(family: str, of: Sequence[Trade]) -> str:
    """Its own name if that is a backend, else its largest one: the legend has names of backends."""
    largest = max(of, key=lambda one: size(one.row) or 0)
    return family if any(one.name == family for one in of) else largest.name


def _panel(group: Group, rows: list[Row], axis: str, x_label: str = "") -> Panel:
    return panel(
        replace(group, rows=rows, label=""),
        axis,
        "error_{}l2_ratio",
        x_label=x_label,
        y_label="relative error",
        unit="share",
    )


def _measured(value: float | None, text: Callable[[float], str]) -> str:
    return "not measured" if value is None else Number(text(value))


COLUMNS: dict[str, Callable[[Trade], Cell]] = {
    "N": lambda one: Quantity(one.n, "count"),
    "backend": lambda one: one.name,
    "size": lambda one: size(one.row),
    "error": lambda one: _measured(one.row.get("error_l2_ratio"), rough_percent_text),
    "cosine": lambda one: _measured(one.row.get("output_cosine"), "{:.2f}".format),
    "time": lambda one: time_of(one.row),
    "time over the fastest exact backend": lambda one: (
        f"{one.against}: {one.ratio.text}" if one.ratio else ""
    ),
    "peak bytes": lambda one: Quantity(one.row.get("peak_bytes"), "bytes"),
}
NOT_ON_CARDS = ("N", "size", "cosine", "peak bytes")


def _table(made: Sequence[Trade], without: Sequence[str] = ()) -> Table:
    columns = {name: cell for name, cell in COLUMNS.items() if name not in without}
    title = "Error and time of approximations"
    return table_of(title, made, columns, case=lambda one: case_key(one.row))
