"""Were the results right? The error of every backend against float64, wrong results, and equal bits
of equal inputs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..data.exactness import is_exact, meanings
from ..data.row_groups import (
    Row,
    backends,
    by_environment,
    distinguishing_axes,
    label,
    problem,
    unusual,
)
from ..data.run_meta import Meta
from ..elements import Block, note, table_of
from ..formatting import list_text, plural
from . import Subject

TITLE = "Correctness"
SECTION = "more"
ORDER = 55
ALLOWED_RATIO = 2.0  # what the correctness check accepts, docs/method.md
WRONG = "incorrect"
HOW = (
    "Each case was checked against a float64 reference before it was timed. Its error may be"
    f" {ALLOWED_RATIO:g} times that of the textbook formula in the same dtype, or as large as"
    " summing the keys one by one in fp32 explains; beyond that it has no latency."
)
BITS = (
    "Same bits on equal inputs, in later calls and in other processes: others are no error, as a"
    " kernel may sum in another order."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """All cases of one backend in one environment. `checked`: those with an error, the largest
    first.
    """

    backend: str
    python: str | None
    rows: Sequence[Row]
    checked: Sequence[Row]

    @property
    def wrong_count(self) -> int:
        return sum(row["status"] == WRONG for row in self.rows)


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    return Subject(blocks=tuple(_blocks(rows)))


def error_ratio(row: Row) -> float:
    return float(row["error_ratio"])


def errors_by_backend(rows: Sequence[Row]) -> list[Errors]:
    """Per environment, the backends with at least one checked case."""
    found = []
    for python, mine in by_environment(rows).items():
        known = [row for row in mine if row.get("error_ratio") is not None and is_exact(row)]
        for name in backends(known):
            of, some = ([row for row in rows if row["backend"] == name] for rows in (mine, known))
            some.sort(key=lambda row: -error_ratio(row))
            found.append(Errors(backend=name, python=python, rows=of, checked=some))
    return found


def _blocks(rows: Sequence[Row]) -> Iterator[Block]:
    found = errors_by_backend(rows)
    if inexact := [row for row in rows if not is_exact(row)]:
        yield note(
            f"Exempt: {plural(len(inexact), 'case')} of {list_text(backends(inexact))}"
            f" ({'; '.join(meanings(inexact))}). Results must be finite and of the right shape."
        )
    if not found:
        yield note("No case has an error on record." if rows else "The plan has no case.")
        return
    axes = distinguishing_axes(rows)
    bits = ("same bits again", "in all processes")
    table = table_of(
        "Error over that of the textbook formula in the same dtype",
        found,
        {
            "backend": lambda one: one.backend,
            "checked": lambda one: len(one.checked),
            "wrong": lambda one: one.wrong_count,
            "smallest": lambda one: error_ratio(one.checked[-1]),
            "largest": lambda one: error_ratio(one.checked[0]),
            "largest at": lambda one: _at(one.checked[0], axes),
            bits[0]: lambda one: _share(one.rows, "repeats_exactly"),
            bits[1]: lambda one: _processes(one.rows),
        },
        optional=bits,
    )
    yield note(HOW)
    yield table
    if {*bits} & {*table.columns}:
        yield note(BITS)


def _processes(rows: Sequence[Row]) -> str:
    """`yes, in 3 to 5`."""
    field = "processes_repeat_exactly"
    counts = [int(row["processes"]) for row in rows if row.get(field) and row["processes"]]
    everywhere = _share(rows, field)
    if everywhere != "yes" or not counts:
        return everywhere
    return f"yes, in {' to '.join(map(str, sorted({min(counts), max(counts)})))}"


def _share(rows: Sequence[Row], field: str) -> str:
    """Of how many cases it is so; "" if that is known of none."""
    known = [bool(row[field]) for row in rows if row.get(field) is not None]
    if 0 < sum(known) < len(known):
        return f"in {sum(known)} of {len(known)} cases"
    return ("yes" if known[0] else "no") if known else ""


def _at(row: Row, axes: list[str]) -> str:
    return label(problem(row), axes) or label(unusual(problem(row)), ["seq_len", "heads"])
