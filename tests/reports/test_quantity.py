"""reports/quantity.py: numbers that write themselves; reports/elements.py: tables of them."""

from math import inf, nan

import pytest

from attnbench.reports.elements import Marked, table_of
from attnbench.reports.formatting import Number
from attnbench.reports.quantity import Quantity, Unit, cell_text


@pytest.mark.parametrize(
    ("value", "unit", "low", "high", "said"),
    [
        (3.2, "ms", 3.1, 3.3, "3.20 ms (3.10 ms to 3.30 ms)"),
        (3.2, "ms", 0.1, 300.0, "3.20 ms (uncertain by more than 10 times)"),
        (3.2, "ms", nan, nan, "3.20 ms"),
        (3.2, "ms", 3.1, inf, "3.20 ms (uncertain by more than 10 times)"),
        (None, "ms", None, None, ""),
        (nan, "times", 1.0, 2.0, ""),
        (3 << 29, "bytes", None, None, "1.5 GiB"),
        (1.07e9, "flops", None, None, "1.07 GFLOP"),
        (9.81e9, "bytes_per_s", 9e9, 1e10, "9.81 GB/s (9.00 GB/s to 10.0 GB/s)"),
        (0.00321, "j", None, None, "3.21 mJ"),
        (0.61, "share", 0.582, 0.639, "61.0 % (58.2 to 63.9)"),
        (2.1, "times", 2.05, 2.16, "2.10 times (2.05 to 2.16)"),
        (2.1, "ratio", 2.05, 2.16, "2.10 (2.05 to 2.16)"),
        (2.1, "ratio", 0.1, 900.0, "2.10 (uncertain by more than 10 times)"),
        (2.1, "ratio", 1.1, 900.0, "2.10 (1.10 to 900)"),
        (8192, "count", None, None, "8k"),
        (2848, "length", None, None, "2\u202f848"),
        (0.05, "plain", None, None, "0.05"),
    ],
)
def test_a_quantity_writes_itself(
    value: float | None, unit: Unit, low: float | None, high: float | None, said: str
) -> None:
    assert str(Quantity(value, unit, low, high)) == said
    assert str(Quantity(value, unit, low, high, note=", unpaired")) == (
        f"{said}, unpaired" if said else ""
    )


def test_cells_are_texts_and_numbers() -> None:
    cells = ("fused", None, 8, 0.5, Quantity(2.0, "ms"), Number("1 ± 2 %"))
    assert list(map(cell_text, cells)) == ["fused", "", "8", "0.50", "2.00 ms", "1 ± 2 %"]


def test_a_table_by_columns_knows_its_numbers_and_its_cases() -> None:
    table = table_of(
        "Times",
        [("a", 1.0), ("b", 2.0)],
        {
            "backend": lambda one: one[0],
            "how": lambda _: "measured",
            "time": lambda one: Marked(cell=Quantity(one[1], "ms"), strong=one[1] < 2),
        },
        case=lambda one: f"case {one[0]}",
    )
    assert table.texts == (("a", "measured", "1.00 ms"), ("b", "measured", "2.00 ms"))
    assert table.numbers == {2}
    assert [[one.strong for one in line] for line in table.cells] == [
        [False, False, True],
        [False, False, False],
    ]
    assert [line[0].case for line in table.cells] == ["case a", "case b"]
