"""Were the results right? The error of every backend against float64, wrong results, and equal bits
of equal inputs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

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
from ..elements import Block, Text, note, table_of
from ..formatting import list_text, number_text, plural
from . import Subject

TITLE = "Correctness"
SECTION = "more"
ORDER = 55
ALLOWED_RATIO = 2.0  # what the correctness check accepts, docs/method.md
WRONG = "incorrect"
PROCESSES = "processes_repeat_exactly"


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """All cases of one backend in one environment. `checked`: those with an error, the largest
    first.
    """

    backend: str
    python: str | None
    checked: Sequence[Row]
    wrong_count: int


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    return Subject(blocks=(*_blocks(rows), *_repeats(rows)))


def error_ratio(row: Row) -> float:
    return float(row["error_ratio"])


def checked(rows: Sequence[Row]) -> Sequence[Row]:
    """The rows that were checked against the exact result."""
    return [row for row in rows if row.get("error_ratio") is not None and is_exact(row)]


def errors_by_backend(rows: Sequence[Row]) -> list[Errors]:
    """Per environment, the backends with at least one checked case."""
    found = []
    for python, mine in by_environment(rows).items():
        for name in backends(checked(mine)):
            of = [row for row in mine if row["backend"] == name]
            wrong = sum(row["status"] == WRONG for row in of)
            found.append(Errors(backend=name, python=python, checked=worst(of), wrong_count=wrong))
    return found


def worst(rows: Sequence[Row]) -> Sequence[Row]:
    """The checked ones, the largest ratios first."""
    return sorted(checked(rows), key=lambda row: -error_ratio(row))


def _blocks(rows: Sequence[Row]) -> Iterator[Block]:
    known, wrong = worst(rows), sum(row["status"] == WRONG for row in rows)
    yield note(
        "Before a case is timed, its result on the same inputs is checked against a float64"
        f" reference. Its error may be {ALLOWED_RATIO:g} times that of the textbook formula in the"
        " same dtype, or as large as summing the keys one after the other in fp32 explains. A case"
        " beyond that has no latency here, nor has one whose timed calls gave other results."
    )
    if inexact := [row for row in rows if not is_exact(row)]:
        are = "is" if len(inexact) == 1 else "are"
        yield note(
            f"{plural(len(inexact), 'case')} of {list_text(backends(inexact))} {are} exempt:"
            f" {'; '.join(meanings(inexact))}. Their results must be finite and have the right"
            " shape."
        )
    if not known:
        yield note("No case has an error on record." if rows else "The plan has no case.")
        return
    axes = distinguishing_axes(rows)
    first = known[0]
    beyond = sum(row["status"] == "ok" and error_ratio(row) > ALLOWED_RATIO for row in known)
    text = f"{plural(len(known), 'case')} checked; {wrong or 'none'} failed the check"
    if beyond:
        limit = f"{ALLOWED_RATIO:g} times the textbook's, which only summing in fp32 may explain"
        text += f", {beyond} passed with an error above {limit}"
    yield Text(
        text=(
            f"{text}. The largest error is {number_text(error_ratio(first))} times that of the"
            " textbook formula:"
            f" {first['backend']} at {_at(first, axes)}."
        )
    )
    yield table_of(
        "Error over that of the textbook formula in the same dtype; below 1 is better than the"
        " textbook",
        errors_by_backend(rows),
        {
            "backend": lambda one: one.backend,
            "checked": lambda one: len(one.checked),
            "smallest": lambda one: error_ratio(one.checked[-1]),
            "largest": lambda one: error_ratio(one.checked[0]),
            "largest at": lambda one: _at(one.checked[0], axes),
            "wrong": lambda one: one.wrong_count,
        },
    )


def _repeats(rows: Sequence[Row]) -> Iterator[Block]:
    """Whether each backend gives equal bits again."""
    lines = []
    for name in backends(rows):
        of = [row for row in rows if row["backend"] == name]
        again, everywhere = _share(of, "repeats_exactly"), _share(of, PROCESSES)
        known = [row["processes"] for row in of if row.get(PROCESSES)]
        counts = {int(count) for count in known if count}  # not of what failed
        if everywhere == "yes" and counts:
            everywhere = f"yes, in {' to '.join(map(str, sorted({min(counts), max(counts)})))}"
        if again or everywhere:
            lines.append((name, again, everywhere))
    columns = ("backend", "called again", "in all processes")
    if lines:
        yield table_of(
            "Are results on equal inputs the same to the bit?",
            lines,
            {name: itemgetter(place) for place, name in enumerate(columns)},
            optional=columns[1:],
        )
        yield note(
            "Other bits are no error: a kernel may split its sums by the size of the batch or by"
            " what is idle, and sums in another order round otherwise. Called again: 512 elements"
            " of what is timed, in calls one after the other. In all processes: the whole output of"
            " the first call after each set-up."
        )


def _share(rows: Sequence[Row], field: str) -> str:
    """Of how many cases it is so; "" if that is known of none."""
    known = [bool(row[field]) for row in rows if row.get(field) is not None]
    if 0 < sum(known) < len(known):
        return f"in {sum(known)} of {len(known)} cases"
    return ("yes" if known[0] else "no") if known else ""


def _at(row: Row, axes: list[str]) -> str:
    return label(problem(row), axes) or label(unusual(problem(row)), ["seq_len", "heads"])
