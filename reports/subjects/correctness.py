"""Were the results right? The error of every backend against float64, and wrong results."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..data.exactness import is_exact, meanings
from ..data.row_groups import (
    Row,
    backends,
    by_environment,
    case_key,
    distinguishing_axes,
    label,
    problem,
    unusual,
)
from ..data.run_meta import Meta
from ..elements import Block, Table, Text, note
from ..formatting import STATUS_WORDS, kernel_text, list_text, number_text, plural
from . import Subject

TITLE = "Correctness"
ORDER = 55
NEEDS = ("error_ratio", "status")
ABOUT = ("cases", "court")
ALLOWED_RATIO = 2.0  # what the correctness check accepts, docs/method.md
WRONG = "incorrect"
MOST_WORST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """All cases of one backend in one environment, with an error or with a wrong result."""

    backend: str
    python: str | None
    checked: Sequence[Row]
    wrong: Sequence[Row]

    @property
    def best(self) -> Row:
        return min(self.checked, key=error_ratio)

    @property
    def worst(self) -> Row:
        return max(self.checked, key=error_ratio)


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    return Subject(blocks=tuple(_blocks(rows, meta)))


def error_ratio(row: Row) -> float:
    return float(row["error_ratio"])


def checked(rows: Sequence[Row]) -> Sequence[Row]:
    """The rows that were checked against the exact result."""
    return [row for row in rows if row.get("error_ratio") is not None and is_exact(row)]


def errors_by_backend(rows: Sequence[Row]) -> list[Errors]:
    """Per environment, the backends with at least one checked case."""
    return [
        Errors(
            backend=name,
            python=python,
            checked=checked([row for row in mine if row["backend"] == name]),
            wrong=[row for row in mine if row["backend"] == name and row["status"] == WRONG],
        )
        for python, mine in by_environment(rows).items()
        for name in backends(checked(mine))
    ]


def worst(rows: Sequence[Row], most: int) -> Sequence[Row]:
    """The largest ratios first."""
    return sorted(checked(rows), key=lambda row: -error_ratio(row))[:most]


def _blocks(rows: Sequence[Row], meta: Meta) -> Iterator[Block]:
    known, wrong = checked(rows), [row for row in rows if row["status"] == WRONG]
    yield note(
        "Before a case is timed, its result on the same inputs is checked against a float64"
        f" reference. Its error may be {ALLOWED_RATIO:g} times that of the textbook formula in the"
        " same dtype, or as large as summing the keys one after the other in fp32 explains. A case"
        " beyond that is never timed."
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
    first = worst(known, 1)[0]
    failed = f"{plural(len(wrong), 'case')} gave a wrong result." if wrong else "none was wrong."
    yield Text(
        text=(
            f"{plural(len(known), 'case')} checked; {failed} The largest error is"
            f" {number_text(error_ratio(first))} times that of the textbook formula:"
            f" {first['backend']} at {_at(first, axes)}."
        )
    )
    by_backend = errors_by_backend(rows)
    several = any(errors.python is not None for errors in by_backend)
    python = ("python",) if several else ()
    yield Table(
        title=(
            "Error over that of the textbook formula in the same dtype; below 1 is better than the"
            " textbook"
        ),
        columns=("backend", *python, "checked", "smallest", "largest", "largest at", "wrong"),
        rows=tuple(
            (
                errors.backend,
                *([errors.python or ""] if several else []),
                str(len(errors.checked)),
                number_text(error_ratio(errors.best)),
                number_text(error_ratio(errors.worst)),
                _at(errors.worst, axes),
                str(len(errors.wrong)),
            )
            for errors in by_backend
        ),
    )
    shown = worst(known, MOST_WORST)
    several_worst = f"The {plural(len(shown), 'case')} with the largest errors"
    yield Table(
        title=several_worst if len(shown) > 1 else "The case with the largest error",
        columns=("case", "error ratio", "relative L2 error", "kernel that ran", "status"),
        rows=tuple(_line(row) for row in shown),
        cases={(place, 0): case_key(row) for place, row in enumerate(shown)},
        folded=True,
    )


def _line(row: Row) -> tuple[str, ...]:
    status = STATUS_WORDS[row["status"]] + (f": {row['reason']}" if row["reason"] else "")
    return (
        row["case"],
        number_text(error_ratio(row)),
        number_text(row.get("error_l2_ratio")),
        kernel_text(row.get("kernel"), row.get("kernel_generation")),
        status,
    )


def _at(row: Row, axes: list[str]) -> str:
    return label(problem(row), axes) or label(unusual(problem(row)), ["seq_len", "heads"])
