"""Approximations of attention: their error over size and N, and the time they save."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any

from ...harness.rows.findings import LinformerProjection, findings_of
from ..data.exactness import NO_INFORMATION_COSINE, carries_nothing, error_text, is_exact
from ..data.row_groups import Group, Row, axis_text, backends, groups
from ..formatting import list_text, percent_text
from .crossover import Crossover, crossover, from_text
from .ratio import Ratio, time_ratio
from .speed import race

SIZES = ("rank", "features")  # names of an approximation's size in a row's configuration
STUDY = LinformerProjection.STUDY
ENDS = ("", "_low", "_high")
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


def approximating(rows: Sequence[Row]) -> list[Group]:
    """Every problem over N on which an approximation was timed."""
    return [group for group in groups(rows, "seq_len") if any(_timed(row) for row in group.rows)]


def method(backend: str) -> str:
    """The backend without its size: `linformer` of `linformer:64`, `linformer:pool` of
    `linformer:pool64`.
    """
    return backend.rstrip("0123456789").rstrip(":")


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
    """Which approximations have no part in a trade-off, and why; "" if all have one.

    `no trade-off is drawn for linformer and linformer:64: ...`.
    """
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


def projections(run: Mapping[str, Any]) -> list[LinformerProjection]:
    """The findings of the study linformer_projections."""
    return findings_of(LinformerProjection, run.get("studies"))


def projection_texts(one: LinformerProjection) -> tuple[str, str]:
    """Cosine and error, each with its interval."""
    cosine, error = (
        tuple(one[f"{name}{end}"] for end in ENDS) for name in ("output_cosine", "error_l2_ratio")
    )
    return (
        f"{cosine[0]:.2f} ({cosine[1]:.2f} to {cosine[2]:.2f})",
        f"{error_text(error[0])} ({error_text(error[1])} to {error_text(error[2])})",
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
    """Its rank or number of features, if the row has it."""
    configuration = row.get("configuration") or {}
    sizes = (configuration.get(name) for name in SIZES)
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
