"""reports/pages/alignment.py: numbers go right, words and cells of several parts do not."""

import pytest

from attnbench.reports.elements import Table
from attnbench.reports.pages.alignment import number_columns


@pytest.mark.parametrize(
    ("cells", "right"),
    [
        (("1.10 ms", "214 μs ± 3 %"), True),
        (("×1.31", "-0.5", "−2 %", "2.10 times (2.05 to 2.16)"), True),
        (("12 MiB", "out of memory (4 GiB)", ""), True),
        (("0.75", "baseline"), True),
        (("out of memory", "not timed"), False),
        (("", ""), False),
        (("sdpa", "12"), False),
        (("1.10 ms · ×1.12 · tie", "2.16 ms · fastest"), False),
        (("8 of 9 blocks were disturbed by other work that wanted the same cores",), False),
    ],
)
def test_a_column_is_of_numbers_if_nothing_but_words_for_missing_ones_is_beside_them(
    cells: tuple[str, ...], right: bool
) -> None:
    rows = tuple((str(place), cell) for place, cell in enumerate(cells))
    found = number_columns(Table(title="", columns=("N", "what"), rows=rows))
    assert found == (frozenset({1}) if right else frozenset())  # never the first, which names rows
