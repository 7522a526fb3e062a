"""Which columns of a table hold numbers: every page aligns them right."""

import re

from ..elements import Table
from ..formatting import STATUS_WORDS

_NUMBER = re.compile(r"[-−+±×~<]?\s?\d")
_WORDS = (*STATUS_WORDS.values(), "not ", "no ", "unknown", "none", "baseline", "measured")
SEVERAL = " · "  # between the parts of a cell
LONGEST = 60  # characters: longer cells are sentences, which may begin with a number too


def number_columns(table: Table) -> frozenset[int]:
    """The columns with numbers, besides the first one, which names the row.

    Words in place of a number, such as a status, change nothing.
    """
    return frozenset(
        column for column in range(1, len(table.columns)) if _is_of_numbers(table, column)
    )


def _is_of_numbers(table: Table, column: int) -> bool:
    if column in table.numbers:
        return True
    cells = [row[column] for row in table.texts if row[column]]
    numbers = [
        cell
        for cell in cells
        if _NUMBER.match(cell) and len(cell) <= LONGEST and SEVERAL not in cell
    ]
    words = sum(cell.startswith(_WORDS) for cell in cells)
    return bool(numbers) and len(numbers) + words >= len(cells)
