"""Were the results right? The error of every backend against float64, and what the gate stopped."""

from collections.abc import Iterator

import pandas as pd

from ..analysis.errors import ALLOWED_RATIO, WRONG, by_backend, judged, ratio, worst
from ..analysis.rows import case_key
from ..data.run_meta import Meta
from ..data.exactness import is_exact, meanings
from ..data.row_groups import (
    Row,
    backends,
    groups,
    label,
    problem,
    records,
    unusual,
    varying_axes,
)
from ..elements import Block, Table, Text
from ..formatting import STATUS_WORDS, list_text, number_text, plural

TITLE = "Correctness"
ORDER = 55
NEEDS = ("error_ratio", "status")
MOST_WORST = 10


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    rows = records(frame)
    known, wrong = judged(rows), [row for row in rows if row["status"] == WRONG]
    yield Text(
        text=(
            "Before a case is timed its result is held against a float64 reference, on the very"
            f" inputs that will be timed. Its error may be {ALLOWED_RATIO:g} times that of the"
            " textbook formula in the same dtype. A case beyond that is never timed."
        ),
        kind="note",
    )
    if apart := [row for row in rows if not is_exact(row)]:
        yield Text(
            text=(
                f"{plural(len(apart), 'case')} of {list_text(backends(apart))}"
                f" {'is' if len(apart) == 1 else 'are'} not held to that:"
                f" {'; '.join(meanings(apart))}. Finite numbers of the right shape are wanted of"
                " them too."
            ),
            kind="note",
        )
    if not known:
        yield Text(
            text="No case has an error on record." if rows else "The plan has no case.", kind="note"
        )
        return
    axes = varying_axes([group.problem for group in groups(rows, None)]) or ["seq_len"]
    first = worst(known, 1)[0]
    failed = f"{plural(len(wrong), 'case')} gave a wrong result." if wrong else "none was wrong."
    yield Text(
        text=(
            f"{plural(len(known), 'case')} judged; {failed} The largest error is"
            f" {number_text(ratio(first))} times that of the textbook formula: {first['backend']}"
            f" at {_at(first, axes)}."
        )
    )
    of_backends = by_backend(rows)
    several = any(errors.python is not None for errors in of_backends)
    yield Table(
        title=(
            "Error over that of the textbook formula in the same dtype; up to 2 passes, below 1 is"
            " better than the textbook"
        ),
        columns=(
            "backend",
            *(["python"] if several else []),
            "judged",
            "smallest",
            "largest",
            "largest at",
            "wrong",
        ),
        rows=tuple(
            (
                errors.backend,
                *([errors.python or ""] if several else []),
                str(len(errors.judged)),
                number_text(ratio(errors.best)),
                number_text(ratio(errors.worst)),
                _at(errors.worst, axes),
                str(len(errors.wrong)),
            )
            for errors in of_backends
        ),
    )
    shown = worst(known, MOST_WORST)
    yield Table(
        title=(
            f"The {plural(len(shown), 'case')} with the largest errors"
            if len(shown) > 1
            else "The case with the largest error"
        ),
        columns=("case", "error ratio", "relative L2 error", "kernel that ran", "outcome"),
        rows=tuple(_line(row) for row in shown),
        cases={(place, 0): case_key(row) for place, row in enumerate(shown)},
        folded=True,
    )


def _line(row: Row) -> tuple[str, ...]:
    outcome = STATUS_WORDS[row["status"]] + (f": {row['reason']}" if row["reason"] else "")
    return (
        row["case"],
        number_text(ratio(row)),
        number_text(row.get("error_l2_ratio")),
        row.get("kernel") or "",
        outcome,
    )


def _at(row: Row, axes: list[str]) -> str:
    return label(problem(row), axes) or label(unusual(problem(row)), ["seq_len", "heads"])
