"""Ratios of contrasts as rows of a dot plot, and their table."""

from collections.abc import Sequence
from math import isfinite

from ..contrasts import Contrast
from ..elements import Dot, DotRow, Table
from ..formatting import number_text, ratio_bounds_text
from ..words import word_of


def counted(ratio: float) -> Dot | None:
    """None without a ratio."""
    if not isfinite(ratio) or ratio <= 0:
        return None
    return Dot(ratio=ratio, word=word_of(ratio, ratio))


def timed(one: Contrast) -> Dot | None:
    """What the equivalence test says; None without a ratio of times."""
    found = one.same_time
    return None if found is None else Dot.of(found.value, found.low, found.high, found.word)


def dot_table(title: str, rows: Sequence[DotRow], *, with_remarks: bool) -> Table:
    """Every number of a dot plot. `with_remarks`: they tell rows apart."""
    return Table(
        title=title,
        columns=("of", "backend", "ratio", "95 % interval", "in words"),
        rows=tuple(
            (
                f"{row.group}, {row.remark}" if with_remarks and row.remark else row.group,
                row.label,
                *_cells(row),
            )
            for row in rows
        ),
    )


def _cells(row: DotRow) -> tuple[str, str, str]:
    if row.dot is None:
        return "", "", row.missing
    bounds = ratio_bounds_text(row.dot.low, row.dot.high)
    return number_text(row.dot.ratio), bounds, row.dot.word
