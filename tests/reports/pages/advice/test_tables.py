"""Advice in tables."""

from pathlib import Path

from attnbench.reports.advice.answer import advise
from attnbench.reports.advice.stored import StoredRows
from attnbench.reports.pages.advice.tables import (
    about,
    choice_tables,
    layer_table,
    longest_table,
    memory_table,
)
from tests.reports.fake_advice import EAGER, SDPA, FakeShapes, inquiry, measured, rows_of


def test_choices_have_time_ratio_verdict_kernel_and_peak(tmp_path: Path):
    asked = inquiry(implementations=(EAGER, SDPA))
    folder = measured(tmp_path, asked, changes={"hf:eager": {"status": "oom"}})
    (table,) = choice_tables(advise(asked, rows_of(asked, folder)))
    first, second = table.rows
    assert first[0] == "sdpa"
    assert first[2:5] == ("1", "fastest", "hf:sdpa kernel")
    assert second[0] == "eager"
    assert second[1].startswith("oom: ")
    assert table.failed == {(1, 1)}
    assert table.strong == {(0, 0)}


def test_nothing_measured_gives_no_table_of_choices():
    assert list(choice_tables(advise(inquiry(), StoredRows()))) == []


def test_every_kind_of_layer_has_a_line_also_those_that_are_not_measured(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,), shapes=FakeShapes(strange=True), others={"mamba": 3})
    table = layer_table(advise(asked, rows_of(asked, measured(tmp_path, asked))))
    assert table is not None
    assert [row[:2] for row in table.rows] == [
        ("full", "3"),
        ("other", "2"),
        ("latent", "1"),
        ("mamba", "3"),
    ]


def test_bytes_and_longest_contexts_name_their_source():
    shapes = FakeShapes(formulas={"hf:sdpa": 7})
    advice = advise(inquiry(shapes=shapes), StoredRows())
    longest, memory = longest_table(advice), memory_table(advice)
    assert longest is not None
    assert longest.title == "Longest context in 3.8 MiB"
    assert longest.rows[0] == ("eager", "prefill", "not known", "", "no formula for hf:eager")
    assert longest.rows[1][2:] == ("3,604", "memory is the limit", "by the formula")
    assert memory is not None
    assert memory.rows[0][:3] == ("1,024", "prefill", "sdpa")


def test_the_line_about_it_names_model_dtype_device_and_rows(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,), tp=4)
    advice = advise(asked, rows_of(asked, measured(tmp_path, asked)))
    assert about(advice) == (
        "mine (minetype), fp32, batch 1, one of 4 devices, on Imaginary CPU 9000; rows of 1 run;"
        " memory: as given"
    )
