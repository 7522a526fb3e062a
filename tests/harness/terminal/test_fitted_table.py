"""fitted_table.py: at any width no line is too long, no number is cut, and nothing is lost
without a word.
"""

from io import StringIO

import pytest
from rich.console import Console

from attnbench.harness.terminal import fitted_table
from attnbench.harness.terminal.progress import table

COLUMNS = ("case", "median ms", "interval", "peak bytes", "FLOP/s", "reason")
REASON = (
    "more than 60 s in one step; raise it with --timeout, or make the case smaller, and see the"
    " log of its worker"
)
ROWS = [
    ("naive n4096 h8", "580.8", "±3.4 %", "134,217,728", "59.2 G", ""),
    ("fused n4096 h8", "-", "-", "1,073,741,824", "-", REASON),
]
WIDTHS = (20, 30, 40, 60, 80, 100, 200)


def drawn(width: int, **more: tuple[str, ...]) -> list[str]:
    out = StringIO()
    console = Console(file=out, width=width, highlight=False)
    console.print(table("A table of five numbers", COLUMNS, ROWS, right=COLUMNS[1:5], **more))
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    assert max(map(len, drawn(width))) <= width


@pytest.mark.parametrize("width", WIDTHS)
def test_no_number_and_no_word_is_broken(width: int) -> None:
    words = {word for line in drawn(width) for word in line.split()}
    assert words <= {
        word
        for text in (
            *(cell for row in ROWS for cell in row),
            *COLUMNS,
            f"A table of five numbers left out at {width} columns:",
            *(f"{name}," for name in " ".join(COLUMNS).split()),
            "reason:",
        )
        for word in text.split()
    }


@pytest.mark.parametrize("width", WIDTHS)
def test_what_is_left_out_is_named(width: int) -> None:
    lines = drawn(width)
    text = " ".join(" ".join(lines).split())
    named = text.partition("left out at")[2]
    for place, column in enumerate(COLUMNS):
        cells = [row[place] for row in ROWS if row[place] not in ("", "-")]
        assert column in named or all(cell in text for cell in cells), column


def test_a_long_text_stands_beside_numbers_where_there_is_room_and_below_where_not() -> None:
    (row,) = [line for line in drawn(200) if "1,073,741,824" in line]
    assert row.endswith("log of its worker")
    below = drawn(80)
    place = next(n for n, line in enumerate(below) if "1,073,741,824" in line)
    assert below[place + 1].startswith("  reason: more than 60 s")


def test_columns_that_may_go_do_one_after_the_other_and_no_other_does() -> None:
    may_go = ("FLOP/s", "interval")
    assert drawn(52, leave_out=may_go)[-1] == "left out at 52 columns: FLOP/s"
    assert drawn(46, leave_out=may_go)[-1] == "left out at 46 columns: interval, FLOP/s"
    assert "left out" not in " ".join(drawn(30, leave_out=may_go) + drawn(52))


def test_headers_fold_before_cells_do() -> None:
    out = StringIO()
    rows = [("naive", "1", "2", "3")]
    columns = ("backend", "kept between calls", "outside the allocator", "minimal traffic")
    Console(file=out, width=40).print(table("", columns, rows))
    lines = out.getvalue().splitlines()
    assert lines[0].split() == ["backend", "kept", "outside", "minimal"]
    assert lines[-1].split() == [*rows[0]]


def test_a_number_stays_with_its_unit() -> None:
    rows = [("naive", "681 KiB (681 KiB)", "out of memory (predicted) (4 GiB)")] * 2
    for width in range(24, 60):
        out = StringIO()
        Console(file=out, width=width).print(table("", ("backend", "h 1", "h 8"), rows))
        assert out.getvalue().count("681 KiB") == 4
        assert out.getvalue().count("4 GiB") == 2


def test_columns_are_aligned() -> None:
    lines = drawn(200)
    ends = {line.index(number) + len(number) for line in lines for number in ("580.8", "median ms")
            if number in line}  # fmt: skip
    assert len(ends) == 1


def test_cells_are_text_and_wide_letters_count_twice() -> None:
    out = StringIO()
    hostile = [("[red]x[/red]", "漢" * 30)]
    Console(file=out, width=80).print(table("", ("a", "b"), hostile))
    assert "[red]x[/red]" in out.getvalue()
    out = StringIO()
    Console(file=out, width=40).print(table("", ("a", "b"), hostile))
    assert all(len(line) + line.count("漢") <= 40 for line in out.getvalue().splitlines())


def test_a_table_without_rows_is_its_headers() -> None:
    out = StringIO()
    Console(file=out, width=80).print(table("", ("a", "b"), []))
    assert out.getvalue().split() == ["a", "b"]


def test_a_cell_stays_with_its_header_where_both_fit_on_a_line() -> None:
    rows = [("naive n256 h1", "1,572,864", "1,048,576"), ("sdpa n256 h1", "1,572,864", "919,552")]
    for width in range(32, 44):
        out = StringIO()
        columns = ("case", "input_bytes", "predicted_peak_bytes")
        Console(file=out, width=width).print(table("", columns, rows))
        lines = out.getvalue().splitlines()
        headed = lines[0].split()[:2] == ["case", "input_bytes"]
        assert headed or sum("input_bytes 1,572,864" in line for line in lines) == 2


def test_a_long_text_is_folded_a_few_times_and_not_once_per_width(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folds = []
    wrapped = fitted_table._wrapped
    monkeypatch.setattr(fitted_table, "_wrapped", lambda *of: folds.append(1) or wrapped(*of))
    out = StringIO()
    rows = [("backends", ", ".join("0" * 10_000))]
    Console(file=out, width=80).print(table("A long one", ("name", "value"), rows))
    assert out.getvalue().count("0") == 10_000
    assert len(folds) < 200
