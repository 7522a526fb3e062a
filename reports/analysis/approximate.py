"""Approximations of attention: how far off they are over their size and over N, and what
that buys.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from ..data.exactness import error_text, is_exact
from ..data.row_groups import Group, Row, axis_text, backends, groups
from ..formatting import list_text
from .crossover import Overtaking, overtaking
from .ratio import Ratio, time_ratio
from .speed import race

SIZES = ("rank", "features")
"""What a row's configuration calls the size of an approximation."""
BESIDE = ("fused", "sdpa")
"""The exact backends that approximations are timed against, where they are there; else all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trade:
    """One timed row that approximates. `ratio` is its time over that of the fastest exact backend,
    None where none was timed there.
    """

    row: Row
    error_l2_ratio: float | None
    ratio: Ratio | None
    against: str


def approximating(rows: Sequence[Row]) -> list[Group]:
    """Every problem over N on which some backend was timed that approximates attention."""
    return [group for group in groups(rows, "seq_len") if any(_timed(row) for row in group.rows)]


def trades(group: Group) -> list[Trade]:
    """By N, then by backend."""
    found = []
    for n in sorted({row["seq_len"] for row in group.rows}):
        here = [row for row in group.rows if row["seq_len"] == n]
        fastest = next(iter(race(here).ranking), None)
        for row in filter(_timed, here):
            ratio = time_ratio(row, fastest) if fastest else None
            against = fastest["backend"] if fastest else ""
            found.append(
                Trade(
                    row=row, error_l2_ratio=row.get("error_l2_ratio"), ratio=ratio, against=against
                )
            )
    return found


def size(row: Row) -> int | None:
    """Its rank or number of features, where the row says."""
    configuration = row.get("configuration") or {}
    return next(
        (configuration[name] for name in SIZES if type(configuration.get(name)) is int), None
    )


def family(backend: str) -> str:
    """Backends that differ in size alone."""
    return backend.partition(":")[0]


def overtakings(group: Group) -> list[Overtaking]:
    """Of each backend that approximates against the exact ones beside it."""
    exact = backends(
        row for row in group.rows if is_exact(row) and row.get("latency_ms") is not None
    )
    beside = [name for name in exact if name in BESIDE] or exact
    found = [
        overtaking(group.rows, name, other)
        for name in backends(filter(_timed, group.rows))
        for other in beside
    ]
    return [one for one in found if one is not None]


def finding(group: Group) -> str:
    """Who is faster than every exact backend beside it at the longest N, since when, and how far
    off it is; of those that differ in size alone the one with the smallest error speaks.

    `faster than fused and sdpa: linformer from N = 2k on (error 3400 % at N = 8k)`.
    """
    found = overtakings(group)
    if not found:
        return "approximate attention was timed with no exact one beside it"
    since: dict[str, list[int | None]] = {}
    for one in found:
        since.setdefault(one.backend, []).append(one.faster_from)
    exact = list_text(list(dict.fromkeys(one.against for one in found)))
    ahead = {
        name: max(n for n in lengths if n is not None)
        for name, lengths in since.items()
        if None not in lengths
    }
    if not ahead:
        return (
            f"no approximate backend is faster than {exact} up to"
            f" {axis_text('seq_len', max(one.lengths[1] for one in found))}"
        )
    spoken: dict[str, str] = {}
    for name in sorted(ahead, key=lambda name: _last_error(group, name)[1]):
        spoken.setdefault(family(name), name)
    said = [
        f"{name} from {axis_text('seq_len', ahead[name])} on{_error_text(group, name)}"
        for name in spoken.values()
    ]
    return f"faster than {exact}: {list_text(said)}"


def _last_error(group: Group, backend: str) -> tuple[int, float]:
    """The longest N at which it is known, and the error there; 0 and infinity where it is known
    nowhere.
    """
    known = {
        row["seq_len"]: row["error_l2_ratio"]
        for row in group.rows
        if row["backend"] == backend and row.get("error_l2_ratio")
    }
    return (max(known), known[max(known)]) if known else (0, inf)


def _error_text(group: Group, backend: str) -> str:
    n, error = _last_error(group, backend)
    return f" (error {error_text(error)} at {axis_text('seq_len', n)})" if n else ""


def _timed(row: Row) -> bool:
    return row.get("exactness") == "approximate" and row.get("latency_ms") is not None
