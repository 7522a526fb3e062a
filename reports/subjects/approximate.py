"""Approximate attention: how far off each setting is, over its size, N and its time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt

from ..data.exactness import NO_INFORMATION_COSINE, carries_nothing, error_text, is_exact
from ..data.row_groups import Group, Row, axis_text, backends, case_key, groups
from ..data.run_meta import Meta, caption
from ..elements import Block, Card, Figure, Panel, Series, Table, note, table_of
from ..formatting import list_text, percent_text, plural
from ..quantity import Cell, Number, Quantity
from ..ratio import Ratio, time_ratio
from . import Subject
from ._crossovers import Crossover, crossover, from_text
from ._linformer_projections import projections_kept
from ._over import N_LABEL, not_drawn
from ._race import race

TITLE = "Approximate attention"
ORDER = 18
NEEDS = ("exactness", "error_l2_ratio", "latency_ms")
BELOW_CLAIMS = True
MOST_FIGURES = 4
SIZES = ("rank", "features")  # names of an approximation's size in a row's configuration
COMPARED = ("fused", "sdpa")  # exact backends to compare with if they were timed, else all


@dataclass(frozen=True, slots=True, kw_only=True)
class Trade:
    """One timed row of an approximation.

    `ratio`: its time over that of the fastest exact backend, None if there is none.
    """

    row: Row
    ratio: Ratio | None
    against: str

    @property
    def name(self) -> str:
        return str(self.row["backend"])

    @property
    def error(self) -> float:
        """Relative L2; 0 if it was not measured."""
        return float(self.row.get("error_l2_ratio") or 0)


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = approximating(rows)
    studied = tuple(projections_kept(meta))
    if not found:
        lacking = "No backend that approximates attention was timed."
        return Subject(blocks=studied, lacking=lacking)
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
        blocks=(how, *details, *not_drawn(found[MOST_FIGURES:]), *studied),
    )


def _with_error(every: Sequence[Trade]) -> list[Trade]:
    return [one for one in every if one.error]


def _card(group: Group, every: Sequence[Trade], *, more: int, meta: Meta) -> Card:
    """At the longest N with an error, of the first problem."""
    longest, made = _at_longest(every)
    at = axis_text("seq_len", longest)
    drawn = [one for one in made if not carries_nothing(one.row)]
    # A setting that carries no information has no place in the picture, only in the note.
    text, why = _capital(_finding_at(group, longest, drawn)), _capital(emptiness(group))
    return Card(
        name="approximate",
        title="Error against time",
        sentence=f"{text}.",
        picture=_table(made, NOT_ON_CARDS)
        if not drawn
        else Figure(
            title=text,
            caption=caption({**group.problem, "seq_len": longest}, meta),
            description=(
                "Relative error over latency, both logarithmic, one dot per approximation and size."
                " The table below has every number."
            ),
            panels=(
                _panel(
                    f"latency in ms, at {at}",
                    [_series(one.name, [(one.row["latency_ms"], one)]) for one in drawn],
                ),
            ),
            table=_table(made, NOT_ON_CARDS),
        ),
        subtitle=f"error over latency at {at}",
        note=(
            "Random inputs and untrained weights: trained ones may do better."
            + (f" {why}" if why else "")
            + (f" {plural(more, 'more problem')} below." if more > 0 else "")
        ),
    )


def _at_longest(every: Sequence[Trade]) -> tuple[int, list[Trade]]:
    longest = max(_n(one.row) for one in every)
    return longest, [one for one in every if _n(one.row) == longest]


def _finding_at(group: Group, n: int, made: Sequence[Trade]) -> str:
    """Of each family, the setting with the smallest error."""
    texts = []
    for family in dict.fromkeys(method(one.name) for one in made):
        one = min((one for one in made if method(one.name) == family), key=lambda one: one.error)
        against = f" and takes {one.ratio.text} the time of {one.against}" if one.ratio else ""
        texts.append(f"{one.name} is off by {error_text(one.error)}{against}")
    nothing = "no approximation's output has anything in common with the exact one"
    return group.prefixed(f"at {axis_text('seq_len', n)} {'; '.join(texts) or nothing}")


def approximating(rows: Sequence[Row]) -> list[Group]:
    """Every problem over N on which an approximation was timed."""
    return [group for group in groups(rows, "seq_len") if any(_timed(row) for row in group.rows)]


def method(backend: str) -> str:
    """Without its size: `linformer` of `linformer:64`, `linformer:pool` of `linformer:pool64`."""
    return backend.partition("[")[0].rstrip("0123456789").rstrip(":")


def empty(group: Group) -> list[Row]:
    """The longest timed N of each approximation whose output carries no information there."""
    last = {row["backend"]: row for row in sorted(filter(_timed, group.rows), key=_n)}
    return [
        last[name] for name in backends(filter(_timed, group.rows)) if carries_nothing(last[name])
    ]


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
    found = []
    for n in group.lengths:
        here = [row for row in group.rows if row["seq_len"] == n]
        fastest = next(iter(race(here).ranking), None)
        for row in filter(_timed, here):
            ratio = time_ratio(row, fastest) if fastest else None
            found.append(Trade(row=row, ratio=ratio, against=fastest["backend"] if fastest else ""))
    return found


def size(row: Row) -> int | None:
    """Its rank or number of features, or another number that its name gives."""
    known = {**(row.get("parameters") or {}), **(row.get("configuration") or {})}
    sizes = (known.get(name) for name in (*SIZES, *(row.get("parameters") or {})))
    return next((value for value in sizes if type(value) is int), None)


def crossovers(group: Group) -> list[Crossover]:
    """Each approximation whose output carries information, against the exact backends."""
    group = informative(group)
    timed = (row for row in group.rows if row.get("latency_ms") is not None)
    exact = backends(filter(is_exact, timed))
    compared = [name for name in exact if name in COMPARED] or exact
    found = [
        crossover(group.rows, name, other)
        for name in backends(filter(_timed, group.rows))
        for other in compared
    ]
    return [one for one in found if one is not None]


def finding(group: Group) -> str:
    """Which approximations are faster than every exact backend at the longest N, and their errors.

    Of each family, the one with the smallest error:
    `faster than fused and sdpa: linformer from N = 2k on (error 3400 % at N = 8k)`.
    """
    found = crossovers(group)
    if not found and (names := backends(empty(group))):
        return f"nothing to trade time for: the output of {list_text(names)} carries no information"
    if not found:
        return "approximate attention was timed without an exact backend to compare with"
    faster_from: dict[str, list[int | None]] = {}
    for one in found:
        faster_from.setdefault(one.backend, []).append(one.faster_from)
    exact = list_text(list(dict.fromkeys(one.against for one in found)))
    faster = {
        name: max(n for n in lengths if n is not None)
        for name, lengths in faster_from.items()
        if None not in lengths
    }
    if not faster:
        longest = axis_text("seq_len", max(one.lengths[-1] for one in found))
        both = "both " if len({one.against for one in found}) == 2 else ""
        return f"at {longest} no approximate backend is clearly faster than {both}{exact}"
    best: dict[str, str] = {}
    for name in sorted(faster, key=lambda name: _last_error(group, name)[1]):
        best.setdefault(method(name), name)
    lengths = {one.backend: one.lengths for one in found}
    texts = [
        f"{name} {from_text(faster[name], lengths[name], axis_text('seq_len', faster[name]))}"
        f"{_error_text(group, name)}"
        for name in best.values()
    ]
    return f"faster than {exact}: {list_text(texts)}"


def _last_error(group: Group, backend: str) -> tuple[int, float]:
    """The longest N with a known error, and the error; 0 and infinity if there is none."""
    known = [row for row in group.of_backend(backend) if row.get("error_l2_ratio")]
    return (known[-1]["seq_len"], known[-1]["error_l2_ratio"]) if known else (0, inf)


def _error_text(group: Group, backend: str) -> str:
    n, error = _last_error(group, backend)
    return f" (error {error_text(error)} at {axis_text('seq_len', n)})" if n else ""


def _timed(row: Row) -> bool:
    return row.get("exactness") == "approximate" and row.get("latency_ms") is not None


def _of_problem(group: Group, made: Sequence[Trade], meta: Meta) -> Iterator[Block]:
    if (known := _with_error(made)) and (drawn := _errors(known)):
        yield Figure(
            title=_capital(_finding_at(group, *_at_longest(known))),
            caption=caption(group.problem, meta),
            description=(
                "Relative error of approximate attention, logarithmic, one panel over its rank or"
                " number of features at the longest N, one over N. The table below has every"
                " number."
            ),
            panels=drawn,
            table=_table(made),
        )
    if text := emptiness(group):
        yield note(group.prefixed(_capital(text)))


def _errors(known: Sequence[Trade]) -> tuple[Panel, ...]:
    """Over the size, if a family has several sizes at the longest N; and over N."""
    longest, last = _at_longest(known)
    families: dict[str, list[Trade]] = {}
    for one in last:
        if size(one.row) is not None:
            families.setdefault(method(one.name), []).append(one)
    over_size = [
        _series(_drawn_as(name, of), [(size(one.row) or 0, one) for one in of])
        for name, of in families.items()
    ]
    panels = []
    if any(len(series.x) > 1 for series in over_size):
        label = f"{' or '.join(SIZES)}, at {axis_text('seq_len', longest)}"
        panels.append(_panel(label, over_size))
    if len({_n(one.row) for one in known}) > 1:
        over_n = [
            _series(name, [(_n(one.row), one) for one in known if one.name == name])
            for name in backends(one.row for one in known)
        ]
        panels.append(_panel(N_LABEL, over_n))
    return tuple(panels)


def _drawn_as(family: str, of: Sequence[Trade]) -> str:
    """Its own name if that is a backend, else its largest one: the legend has names of backends."""
    largest = max(of, key=lambda one: size(one.row) or 0)
    return family if any(one.name == family for one in of) else largest.name


def _panel(x_label: str, series: Sequence[Series]) -> Panel:
    return Panel(x_label=x_label, y_label="relative error", unit="share", series=tuple(series))


def _series(name: str, points: Sequence[tuple[float, Trade]]) -> Series:
    ordered = sorted((x, one.error, case_key(one.row)) for x, one in points)
    xs, ys, keys = zip(*ordered, strict=True)
    return Series(backend=name, kind="measured", x=xs, y=ys, cases=keys)


def _measured(value: float | None, text: Callable[[float], str]) -> str:
    return "not measured" if value is None else Number(text(value))


def _n(row: Row) -> int:
    return int(row["seq_len"])


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


COLUMNS: dict[str, Callable[[Trade], Cell]] = {
    "N": lambda one: Quantity(_n(one.row), "count"),
    "backend": lambda one: one.name,
    "size": lambda one: size(one.row),
    "error": lambda one: _measured(one.row.get("error_l2_ratio"), error_text),
    "cosine": lambda one: _measured(one.row.get("output_cosine"), "{:.2f}".format),
    "time": lambda one: Quantity(one.row["latency_ms"], "ms"),
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
