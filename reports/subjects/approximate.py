"""Approximate attention: how far off each setting is, over its size, N and its time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt

from ..data.exactness import NO_INFORMATION_COSINE, carries_nothing, error_text, is_exact
from ..data.row_groups import Group, Row, axis_text, backends, case_key, groups
from ..data.run_meta import Meta, caption
from ..elements import Block, Card, Figure, Panel, Series, Table, note
from ..formatting import bytes_text, count_text, list_text, percent_text, plural, time_text
from ..ratio import Ratio, time_ratio
from . import Subject
from ._crossovers import Crossover, crossover, from_text
from ._linformer_projections import projections_kept
from ._over_n import N_LABEL, not_drawn
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
    error_l2_ratio: float | None
    ratio: Ratio | None
    against: str


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = approximating(rows)
    studied = tuple(projections_kept(meta))
    if not found:
        if studied:
            return Subject(blocks=studied)
        return Subject(lacking="No backend that approximates attention was timed.")
    known = [(group, some) for group in found if (some := _with_error(trades(group)))]
    how = note(
        "The error is the distance from exact attention over its size (relative L2, the worst of"
        " output and gradients), on random inputs and untrained weights. Trained weights may do"
        " better. The cosine is that of the angle between the output and the exact one, over all"
        " rows that are checked: 1 is equal but for a factor, 0 has nothing in common with it."
    )
    details = [block for group in found[:MOST_FIGURES] for block in _of_problem(group, meta)]
    return Subject(
        card=_card(*known[0], more=len(known) - 1, meta=meta) if known else None,
        blocks=(how, *details, *not_drawn(found[MOST_FIGURES:]), *studied),
    )


def _with_error(every: Sequence[Trade]) -> list[Trade]:
    return [one for one in every if one.error_l2_ratio]


def _card(group: Group, every: Sequence[Trade], *, more: int, meta: Meta) -> Card:
    """At the longest N with an error, of the first problem."""
    longest = max(one.row["seq_len"] for one in every)
    made = [one for one in every if one.row["seq_len"] == longest]
    at = axis_text("seq_len", longest)
    drawn = [one for one in made if not carries_nothing(one.row)]
    # A setting that carries no information has no place in the picture, only in the note.
    finding = "; ".join(_best(drawn)) or (
        "no approximation's output has anything in common with the exact one"
    )
    text = group.prefixed(f"at {at} {finding}")
    why = emptiness(group)
    return Card(
        name="approximate",
        title="Error against time",
        sentence=f"{text[0].upper()}{text[1:]}.",
        picture=_short_table(made)
        if not drawn
        else Figure(
            title=text,
            caption=caption({**group.problem, "seq_len": longest}, meta),
            description=(
                "Relative error over latency, both logarithmic, one dot per approximation and size."
                " The table below has every number."
            ),
            panels=(
                Panel(
                    x_label=f"latency in ms, at {at}",
                    y_label="relative error",
                    unit="share",
                    series=tuple(_dot(drawn, name) for name in backends(one.row for one in drawn)),
                ),
            ),
            table=_short_table(made),
        ),
        subtitle=f"error over latency at {at}",
        note=(
            "Random inputs and untrained weights: trained ones may do better."
            + (f" {why[0].upper()}{why[1:]}" if why else "")
            + (f" {plural(more, 'more problem')} below." if more > 0 else "")
        ),
    )


def _best(made: Sequence[Trade]) -> list[str]:
    """Of each family, the setting with the smallest error."""
    texts = []
    for name in dict.fromkeys(method(one.row["backend"]) for one in made):
        mine = [one for one in made if method(one.row["backend"]) == name]
        one = min(mine, key=lambda one: one.error_l2_ratio or 0.0)
        against = f" and takes {one.ratio.text} the time of {one.against}" if one.ratio else ""
        texts.append(
            f"{one.row['backend']} is off by {error_text(one.error_l2_ratio or 0)}{against}"
        )
    return texts


def _dot(made: Sequence[Trade], backend: str) -> Series:
    (one,) = [one for one in made if one.row["backend"] == backend][:1]
    return Series(
        backend=backend,
        kind="measured",
        x=(one.row["latency_ms"],),
        y=(one.error_l2_ratio,),
        cases=(case_key(one.row),),
    )


def _short_table(made: Sequence[Trade]) -> Table:
    return Table(
        title="Error and time of approximations",
        columns=("backend", "error", "time", "time over the fastest exact backend"),
        rows=tuple(
            (
                one.row["backend"],
                error_text(one.error_l2_ratio or 0),
                time_text(one.row["latency_ms"]),
                f"{one.against}: {one.ratio.text}" if one.ratio else "",
            )
            for one in made
        ),
    )


def approximating(rows: Sequence[Row]) -> list[Group]:
    """Every problem over N on which an approximation was timed."""
    return [group for group in groups(rows, "seq_len") if any(_timed(row) for row in group.rows)]


def method(backend: str) -> str:
    """Without its size: `linformer` of `linformer:64`, `linformer:pool` of `linformer:pool64`."""
    return backend.partition("[")[0].rstrip("0123456789").rstrip(":")


def empty(group: Group) -> list[str]:
    """The approximations whose output carries no information at the longest N that was timed."""
    return [
        name
        for name in backends(filter(_timed, group.rows))
        if carries_nothing([row for row in group.of_backend(name) if _timed(row)][-1])
    ]


def informative(group: Group) -> Group:
    """The group without them: their time is no trade for anything."""
    left_out = set(empty(group))
    return replace(group, rows=[row for row in group.rows if row["backend"] not in left_out])


def emptiness(group: Group) -> str:
    """Which approximations have no part in a trade-off, and why; "" if all have one."""
    names = empty(group)
    if not names:
        return ""
    last = [[row for row in group.of_backend(name) if _timed(row)][-1] for name in names]
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
        found += [
            Trade(
                row=row,
                error_l2_ratio=row.get("error_l2_ratio"),
                ratio=time_ratio(row, fastest) if fastest else None,
                against=fastest["backend"] if fastest else "",
            )
            for row in filter(_timed, here)
        ]
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
    if not found and (names := empty(group)):
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
    known = {
        row["seq_len"]: row["error_l2_ratio"]
        for row in group.of_backend(backend)
        if row.get("error_l2_ratio")
    }
    return (max(known), known[max(known)]) if known else (0, inf)


def _error_text(group: Group, backend: str) -> str:
    n, error = _last_error(group, backend)
    return f" (error {error_text(error)} at {axis_text('seq_len', n)})" if n else ""


def _timed(row: Row) -> bool:
    return row.get("exactness") == "approximate" and row.get("latency_ms") is not None


def _of_problem(group: Group, meta: Meta) -> Iterator[Block]:
    made = trades(group)
    if drawn := _errors(made):
        yield Figure(
            title=group.prefixed(_error_finding(made)),
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
        yield note(group.prefixed(f"{text[0].upper()}{text[1:]}"))


def _errors(made: Sequence[Trade]) -> tuple[Panel, ...]:
    """Over the size, if a family has several sizes at the longest N; and over N."""
    known = [one for one in made if one.error_l2_ratio]
    longest = max((one.row["seq_len"] for one in known), default=0)
    sized = [one for one in known if one.row["seq_len"] == longest and size(one.row) is not None]
    over_size = [
        _series(_drawn_as(of), [(size(one.row) or 0, one) for one in of])
        for name in dict.fromkeys(map(_family, sized))
        for of in [[one for one in sized if _family(one) == name]]
    ]
    panels = []
    if any(len(series.x) > 1 for series in over_size):
        label = f"{' or '.join(SIZES)}, at {axis_text('seq_len', longest)}"
        panels.append(_panel(label, over_size))
    if len({one.row["seq_len"] for one in known}) > 1:
        over_n = [
            _series(
                name, [(one.row["seq_len"], one) for one in known if one.row["backend"] == name]
            )
            for name in backends(one.row for one in known)
        ]
        panels.append(_panel(N_LABEL, over_n))
    return tuple(panels)


def _drawn_as(family: Sequence[Trade]) -> str:
    """Its own name if that is a backend, else its largest one: the legend has names of backends."""
    names = {one.row["backend"] for one in family}
    largest = max(family, key=lambda one: size(one.row) or 0)
    return name if (name := _family(largest)) in names else str(largest.row["backend"])


def _family(one: Trade) -> str:
    return method(one.row["backend"])


def _panel(x_label: str, series: Sequence[Series]) -> Panel:
    return Panel(x_label=x_label, y_label="relative error", unit="share", series=tuple(series))


def _series(name: str, points: Sequence[tuple[int, Trade]]) -> Series:
    ordered = sorted((x, one.error_l2_ratio, case_key(one.row)) for x, one in points)
    xs, ys, keys = zip(*ordered, strict=True)
    return Series(backend=name, kind="measured", x=xs, y=ys, cases=keys)


def _error_finding(made: Sequence[Trade]) -> str:
    """The smallest and the largest error at the longest N."""
    longest = max(one.row["seq_len"] for one in made if one.error_l2_ratio)
    known = sorted(
        (one.error_l2_ratio, one.row["backend"])
        for one in made
        if one.error_l2_ratio and one.row["seq_len"] == longest
    )
    (low, best), (high, worst) = known[0], known[-1]
    where = f"at {axis_text('seq_len', longest)}"
    if best == worst:
        return f"{best} is off by {error_text(low)} {where}"
    return f"{where} {best} is off by {error_text(low)}, {worst} by {error_text(high)}"


def _table(made: Sequence[Trade]) -> Table:
    rows, cases = [], {}
    for place, one in enumerate(made):
        row, ratio = one.row, one.ratio
        cases[place, 1] = case_key(row)
        rows.append(
            (
                count_text(row["seq_len"]),
                row["backend"],
                "" if size(row) is None else str(size(row)),
                "not measured" if one.error_l2_ratio is None else error_text(one.error_l2_ratio),
                _cosine(row),
                time_text(row["latency_ms"]),
                "" if ratio is None else f"{one.against}: {ratio.text}",
                bytes_text(row.get("peak_bytes")),
            )
        )
    fastest = "time over the fastest exact backend"
    columns = ("N", "backend", "size", "error", "cosine", "time", fastest, "peak bytes")
    return Table(
        title="Error and time of approximations",
        columns=columns,
        rows=tuple(rows),
        cases=cases,
    )


def _cosine(row: Row) -> str:
    cosine = row.get("output_cosine")
    return "not measured" if cosine is None else f"{cosine:.2f}"
