"""Rows as plain values, grouped by problem: which axes vary, and how a problem is named.

Some thirty subjects ask the same of the same rows. What takes long is computed `once` for all.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt
from typing import Any, TypeVar

from ...harness.rows.model import AXES as PROBLEM_AXES
from ..formatting import Number, length_text

Row = dict[str, Any]
Found = TypeVar("Found")
Key = TypeVar("Key")
AXES = ("run", "device", "python", *PROBLEM_AXES)
OF_A_RUN = ("device", "dtype", "batch", "d_model")
"""What the header of a page says of a run, if all its cases have one value."""
COPY = "replica"  # of earlier versions, which measured a case several times on purpose
ROOT = "√N"  # the usual stride: round(sqrt(kv_seq_len))
WIDTHS = ("d_k", "d_v")  # of one head
SUMS = ("seq_len", "kv_seq_len", "causal_align")  # follow from the lengths of a ragged batch
_GOES_WITH = {axis.goes_with: name for name, axis in PROBLEM_AXES.items() if axis.goes_with}
FEW_AXES = 3  # of a label that names all of them
_FOLLOWS = {name: axis.usual_text for name, axis in PROBLEM_AXES.items() if axis.usual_text}
FOLLOWERS = tuple(name for name, axis in PROBLEM_AXES.items() if axis.usual_text)
_USUAL = {name: axis.usual for name, axis in PROBLEM_AXES.items() if axis.usual}


class LoadedRow(Row):
    """A row of a run that was read, which nobody changes any more. `known`: see `once`. `shared`:
    see beside.link.
    """

    __slots__ = ("known", "shared")
    known: dict[Hashable, tuple[Sequence[Row], Any]]
    shared: Row | None


def by(found: Iterable[Found], key: Callable[[Found], Key]) -> dict[Key, tuple[Found, ...]]:
    """What was found by what it has in common, in order."""
    some: dict[Key, list[Found]] = {}
    for one in found:
        some.setdefault(key(one), []).append(one)
    return {of: tuple(each) for of, each in some.items()}


def once(rows: Sequence[Row], what: Hashable, compute: Callable[[], Found]) -> Found:
    """What `compute` finds of these rows, by the name `what`: computed the first time and kept with
    the first row, for as long as that lives. Of rows that may still change, computed every time.
    """
    if not rows or not isinstance(rows[0], LoadedRow):
        return compute()
    try:
        known = rows[0].known
    except AttributeError:
        known = rows[0].known = {}
    key = (what, *map(id, rows))
    if key not in known:
        known[key] = (tuple(rows), compute())  # with the rows, so that no other gets their ids
    found: Found = known[key][1]
    return found


@dataclass(frozen=True, kw_only=True)
class Group:
    """Rows of one problem, except for the axis over which they are drawn.

    `label` distinguishes groups. `following`: the sizes that follow that axis (`followers`), such
    as `B = 16 384 / N`. Then no difference is the axis's own, and no growth is told along it.
    """

    label: str
    problem: dict[str, Any]
    rows: list[Row]
    following: str = ""

    @property
    def at(self) -> str:
        """The label, with N even if it does not vary."""
        n = axis_text("seq_len", self.problem["seq_len"])
        parts = self.label.split(", ")
        return self.label if n in parts else ", ".join(filter(None, (n, self.label)))

    def by_value(self, axis: str) -> dict[Any, list[Row]]:
        """The rows of each value of an axis, from the least."""
        found: dict[Any, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row[axis], []).append(row)
        return dict(sorted(found.items()))

    @cached_property
    def by_length(self) -> dict[int, list[Row]]:
        """The rows of each N, from the shortest."""
        return self.by_value("seq_len")

    @property
    def lengths(self) -> list[int]:
        return list(self.by_length)

    def prefixed(self, finding: str) -> str:
        """The finding, preceded by the problem if there are several."""
        return f"For {self.label}: {finding}" if self.label else finding

    def of_backend(self, backend: str) -> list[Row]:
        """The rows of one backend in order of N."""
        mine = (row for row in self.rows if row["backend"] == backend)
        return sorted(mine, key=lambda row: row["seq_len"])


def first_copies(rows: Sequence[Row]) -> Sequence[Row]:
    """The rows without further copies of a case, which earlier versions measured on purpose.

    Where the first copy is not in these runs (a shard), the one with the lowest number stays.
    """

    def case(row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in (*AXES, "backend"))

    lowest: dict[tuple[Any, ...], int] = {}
    for row in rows:
        if row[COPY] is not None:
            lowest[case(row)] = min(row[COPY], lowest.get(case(row), row[COPY]))
    return [row for row in rows if row[COPY] in (None, lowest.get(case(row)))] if lowest else rows


def case_key(row: Row) -> str:
    """A name for a case that is unique on a page of several runs."""
    return f"{row['run']} {row['case']}"


def problem(row: Row) -> dict[str, Any]:
    """The problem of a row.

    A size that follows another in the usual way is replaced by its name: kv_seq_len "N", d_k
    "d_model/h". The triangle of a square has no corner: both are the same.
    """
    return dict(once([row], "problem", lambda: _problem(row)))


def _problem(row: Row) -> dict[str, Any]:
    axes: dict[str, Any] = {axis: row.get(axis) for axis in AXES}
    if axes["kv_seq_len"] == axes["seq_len"]:
        axes["causal_align"] = ""
    return axes | {
        axis: text for axis, text in _FOLLOWS.items() if axes[axis] == _USUAL[axis](axes)
    }


def followers(rows: Sequence[Row], axis: str) -> dict[str, str]:
    """The other sizes that are a function of this one over three problems or more, and which:
    `{"batch": "16 384 / N"}`. Without those that follow as they usually do, which are not free.
    """
    problems = [problem(row) for row in rows if row.get(axis) is not None]
    usual = {axis, "window"} if _strides_are_roots(rows) else {axis}
    found = {}
    for other in varying_axes(problems):
        pairs = {(one[axis], one[other]) for one in problems}
        is_size = all(type(size) is int and size > 0 for pair in pairs for size in pair)
        is_function = 2 < len(pairs) == len({size for size, _ in pairs})
        if other not in usual and is_size and is_function:
            found[other] = _relation(pairs, axis_title(axis))
    return found


def told_once(rows: Sequence[Row]) -> dict[str, str]:
    """The sizes that follow N by a formula, which name no problem: N tells those apart."""
    found = followers(rows, "seq_len")
    return {axis: text for axis, text in found.items() if not text.startswith("f(")}


def _relation(pairs: Iterable[tuple[int, int]], symbol: str) -> str:
    """Of (size, what follows it): `16 384 / N`, `N`, `2 N`, `N / 64`, else `f(N)`."""
    if len(products := {size * other for size, other in pairs}) == 1:
        return f"{length_text(products.pop())} / {symbol}"
    shares = {Fraction(other, size) for size, other in pairs}
    share = shares.pop()
    if not shares and share.denominator == 1:
        return f"{share} {symbol}".removeprefix("1 ")
    is_part = not shares and share.numerator == 1
    return f"{symbol} / {share.denominator}" if is_part else f"f({symbol})"


def groups(
    rows: Iterable[Row],
    over: str | None,
    given: Sequence[str] = (),
    *,
    following: bool = False,
) -> list[Group]:
    """Rows by problem in the order of the plan, whatever their backend and their value of `over`.

    If every stride is the root of its N, the stride counts as equal and is named √N. Widths of
    heads that a run gives itself keep their number, also where they happen to be d_model/h. What
    goes with `over` does not count: the window with the mask, the corner with causal, d_v with an
    equal d_k, the sums of lengths with those. `given`: sizes that keep their number, also where
    they follow another one. `following`: rows whose other sizes follow `over` are one problem,
    which names how.
    """
    rows = list(rows)
    follow = followers(rows, over) if following and over else {}
    key = ("groups", over, *given, *follow)
    return list(once(rows, key, lambda: _groups(rows, over, given, follow)))


def _groups(
    rows: Sequence[Row], over: str | None, given: Sequence[str], follow: dict[str, str]
) -> list[Group]:
    rooted, fixed = _strides_are_roots(rows), _fixed_widths(rows)
    corners = {problem(row)["causal_align"] for row in rows if row.get("causal")} - {None, ""}
    together: dict[tuple[Any, ...], tuple[dict[str, Any], list[Row]]] = {}
    for row in rows:
        if over is not None and row.get(over) is None:
            continue
        equal = problem(row)
        if fixed:
            equal |= {width: row[width] for width in WIDTHS if _width_key(row, width) in fixed}
        equal |= {axis: row.get(axis) for axis in given} | follow
        if over == "kv_seq_len" and len(corners) == 1 and row.get("causal"):
            equal["causal_align"] = next(iter(corners))  # a square has that corner, too
        if rooted and row.get("mask") == "strided":
            equal["window"] = ROOT
        if over == "d_k" and row["d_v"] == row["d_k"] and "d_v" not in given:
            equal["d_v"] = "d_k"
        for axis in (over, _GOES_WITH.get(over or ""), *(SUMS if over == "lengths" else ())):
            equal.pop(axis or "", None)
        together.setdefault(tuple(equal.values()), (equal, []))[1].append(row)
    told = told_once(rows) if over is None else {}
    varying = [
        axis for axis in varying_axes([equal for equal, _ in together.values()]) if axis not in told
    ]
    return [
        Group(label=label(equal, varying), problem=equal, rows=rows, following=label(follow))
        for equal, rows in together.values()
    ]


def _width_key(row: Row, width: str) -> tuple[Any, ...]:
    return width, row.get("run"), row.get("d_model"), row.get(width)


def _fixed_widths(rows: Iterable[Row]) -> set[tuple[Any, ...]]:
    """The widths of heads that do not follow from d_model in some row of the same run.

    Eight heads of width 64 with d_model 512, of which fewer and fewer are left: 64 is the width
    that was asked for, also where 8 * 64 = d_model.
    """
    return {
        _width_key(row, width)
        for row in rows
        for width in WIDTHS
        if row.get(width) and row.get("heads") and row[width] * row["heads"] != row.get("d_model")
    }


def over_lengths(rows: Iterable[Row], *, following: bool = False) -> list[Group]:
    """The groups over N that have at least two lengths; `following` as in `groups`."""
    found = groups(rows, "seq_len", following=following)
    return [group for group in found if len(group.lengths) > 1]


def by_environment(rows: Iterable[Row]) -> dict[str | None, tuple[Row, ...]]:
    """The rows of each environment; all under None if there is only one."""
    return by(rows, lambda row: row.get("python")) or {None: ()}


def _strides_are_roots(rows: Iterable[Row]) -> bool:
    """True if every stride is the root of its length, and there are at least two lengths."""
    strides = {
        (row["kv_seq_len"], row.get("window"))
        for row in rows
        if row.get("mask") == "strided" and row.get("kv_seq_len")
    }
    return len(strides) > 1 and all(
        stride == max(1, round(sqrt(length))) for length, stride in strides
    )


def varying_axes(problems: list[dict[str, Any]]) -> list[str]:
    """The corner of a causal mask only if causal problems differ in it. Of several runs what each
    has one value of is told with the run's name, where pages have that.
    """
    found = {axis: {problem.get(axis) for problem in problems} for axis in AXES}
    found["causal_align"] -= {None, ""}
    several = len(found["run"]) > 1
    for axis in OF_A_RUN if several else ():
        if len({(problem["run"], problem.get(axis)) for problem in problems}) == len(found["run"]):
            found[axis] = set()
    return [axis for axis, values in found.items() if len(values) > 1]


def distinguishing_axes(rows: Iterable[Row]) -> list[str]:
    """The axes that tell the problems of these rows apart; N if there is only one problem. What
    follows N is told once, in the header of the run.
    """
    rows = list(rows)
    told = told_once(rows)
    varying = varying_axes([group.problem for group in groups(rows, None)])
    return [axis for axis in varying if axis not in told] or ["seq_len"]


def label(of: dict[str, Any], axes: Iterable[str] = AXES) -> str:
    """A problem as text, by the named axes: `N = 8k, h = 8, bf16, causal`. Of many axes only what
    does not follow from another one.
    """
    named = {axis: of[axis] for axis in axes if axis in of}
    if FEW_AXES < len(named) < len(AXES):
        named = {axis: value for axis, value in named.items() if _FOLLOWS.get(axis) != value}
    return ", ".join(filter(None, map(axis_text, named, named.values())))


def axis_text(axis: str, value: Any) -> str:
    if value is None or value == "":
        return ""
    if axis not in PROBLEM_AXES:
        return f"python {value}" if axis == "python" else str(value)  # an environment's name
    of = PROBLEM_AXES[axis]
    # no-break spaces keep it on one line
    return f"{of.symbol}\u00a0=\u00a0{value_text(axis, value)}" if of.symbol else of.text(value)


def axis_title(axis: str) -> str:
    return (PROBLEM_AXES[axis].symbol if axis in PROBLEM_AXES else "") or axis


def value_text(axis: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if not isinstance(value, int):
        return str(value)
    return length_text(value) if axis in ("seq_len", "kv_seq_len") else Number(value)


def follows(rows: Iterable[Row], axis: str) -> bool:
    """Whether an axis has its usual value in all of these rows, so that it is no question."""
    return axis in _FOLLOWS and all(problem(row)[axis] == _FOLLOWS[axis] for row in rows)


def unusual(of: dict[str, Any]) -> dict[str, Any]:
    """The problem without the run's name and without sizes that follow another one."""
    return {
        axis: value for axis, value in of.items() if axis != "run" and _FOLLOWS.get(axis) != value
    }


def is_timed(row: Row) -> bool:
    return row.get("latency_ms") is not None


def backends(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(row["backend"] for row in rows))


def family(backend: str) -> str:
    """The backend without variant and parameters: `sdpa` of `sdpa:flash`."""
    return backend.partition("[")[0].partition(":")[0]
