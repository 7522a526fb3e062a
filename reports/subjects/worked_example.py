"""Attention on three tokens, every number of it, and under masks; from the study worked_example."""

from collections.abc import Iterator, Sequence

from ..data.findings import WorkedExample
from ..data.row_groups import Row
from ..data.run_meta import Meta
from ..elements import Block, Table, Text, note
from ..formatting import list_text, number_text
from . import Subject
from ._studies import failed, studied

TITLE = "Worked example"
SECTION = "more"
APART = True
ORDER = 50
STUDIES = (WorkedExample.STUDY,)
DIGITS = 3
FILL = 1e6  # scores beyond it are a fill, and shown as one


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    _, _, found = next(studied(WorkedExample, meta), ("", "", []))  # the same numbers in every run
    blocks = (*_steps(found[0]), *_masks(found[1:]), note(_agreement(found))) if found else ()
    return Subject(
        blocks=(*blocks, *failed(meta, WorkedExample.STUDY)),
        lacking="No example. A scenario requests it with studies: [worked_example].",
    )


def _steps(one: WorkedExample) -> Iterator[Block]:
    width, tokens = len(one.query_rows[0]), len(one.query_rows)
    yield Text(
        text=(
            f"Attention on {tokens} tokens by hand. Each score is the scalar product of a query and"
            f" a key, divided by the square root of their width, {width}. A softmax makes each row"
            " of scores positive with the sum 1. Each output is the mean of the values under these"
            " weights."
        )
    )
    names = ("query", "key", "value", "score", "weight", "output")
    yield Table(
        title="Step by step, without a mask",
        columns=("token", "query", "key", "value", "scores", "weights", "output"),
        rows=tuple(_lines(one, *names)),
    )


def _lines(one: WorkedExample, *names: str) -> Iterator[tuple[str, ...]]:
    """A line per token, with its number and these rows of the example."""
    rows = zip(*(one[f"{name}_rows"] for name in names), strict=True)
    return ((str(token), *map(_row, of)) for token, of in enumerate(rows, start=1))


def _masks(found: Sequence[WorkedExample]) -> Iterator[Block]:
    if not found:
        return
    yield Table(
        title="The same tokens under masks",
        columns=("mask", "token", "scores", "weights", "output"),
        rows=tuple(
            (one.mask, *line) for one in found for line in _lines(one, "score", "weight", "output")
        ),
    )
    yield note(
        "– is a pair that a boolean mask removes. Fills of -1e9 have the same effect, since exp of"
        " them is 0, except where a query has nothing else: then they are equal scores and give"
        " equal weights, while a query that sees no key has the output 0."
    )


def _agreement(found: Sequence[WorkedExample]) -> str:
    worst = max(one.worst_error for one in found)
    names = list_text(list(dict.fromkeys(name for one in found for name in one.backends)))
    distance = f"at most {number_text(worst)} away" if worst else "equal"
    return (
        f"These are the numbers of the formula in fp32; the outputs of {names} in"
        f" {found[0].dtype} are {distance}."
    )


def _row(numbers: Sequence[float | None]) -> str:
    return ", ".join(map(_number, numbers))


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    if abs(value) > FILL:
        return f"{value:.0e}".replace("e+0", "e")
    return f"{value:.{DIGITS}f}".rstrip("0").rstrip(".")
