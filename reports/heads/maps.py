"""Attention maps of trained heads: what a head looks at, and the texts about it."""

from collections.abc import Callable, Sequence
from math import exp, log
from statistics import fmean
from typing import TypeVar

from ..elements import Map, Maps, Table
from ..formatting import number_text, plural
from ..quantity import Cell

Item = TypeVar("Item")

Rows = Sequence[Sequence[float]]
"""Of a causal map: weights, [query][key]."""
READING = (
    "How to read the maps: a square is a head, a row is a token that asks, a column a token that it"
    " may look at; none looks ahead. Bright is much weight. A bright line beside the diagonal is a"
    " head that always looks the same number of places back; a bright column is a token that all"
    " look at; a dim triangle is a head that averages over everything before it, as heads do before"
    " they are trained."
)


def favourite(rows: Rows) -> tuple[int, float]:
    """How many places back a map has most weight, and its mean share of it.

    Of the last third of the queries: the first ones have too few tokens before them, and tasks may
    ask them nothing.
    """
    n = len(rows)
    first = 2 * n // 3
    shares = {
        back: fmean(rows[query][query - back] for query in range(first, n))
        for back in range(first + 1)
    }
    back = max(shares, key=lambda one: shares[one])
    return back, shares[back]


def tokens_attended(rows: Rows) -> float:
    """exp of the mean entropy of the rows."""
    return exp(fmean(-sum(w * log(w) for w in row if w > 0) for row in rows))


def mean_attended(maps: Sequence[tuple[str, Rows]]) -> str:
    return number_text(fmean(tokens_attended(rows) for _, rows in maps))


def back_text(places: int) -> str:
    return f"{plural(places, 'place')} back" if places else "at its own token"


def looked_at(rows: Callable[[Item], Rows]) -> dict[str, Callable[[Item], Cell]]:
    """Columns of a table: tokens attended to, and `1 place back: 92 %`."""

    def most(one: Item) -> str:
        back, share = favourite(rows(one))
        return f"{back_text(back)}: {100 * share:.0f} %"

    return {
        "tokens attended to": lambda one: tokens_attended(rows(one)),
        "most weight": most,
    }


def head_name(block: int, head: int, *, several: bool) -> str:
    return f"block {block + 1} head {head + 1}" if several else f"head {head + 1}"


def side_by_side(title: str, caption: str, maps: Sequence[tuple[str, Rows]], table: Table) -> Maps:
    return Maps(
        title=title,
        caption=caption,
        description=(
            "One square per head: each row is a query token, each column a key token, lighter is a"
            " larger weight, each row sums to 1, and none looks ahead. The table has for each head"
            " how many tokens it attends to on average, and at which distance it has most weight."
        ),
        x_label="key token",
        y_label="query token",
        value_label="weight",
        maps=tuple(Map(label=label, rows=tuple(map(tuple, rows))) for label, rows in maps),
        table=table,
    )
