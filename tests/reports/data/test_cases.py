"""reports/data/cases.py: one tidy frame; which axes tell problems apart, and which ones follow."""

from typing import Any

import pandas as pd
import pytest

from attnbench.reports.data import cases as of
from attnbench.reports.data.columns import COUNT, NESTED, TEXT
from attnbench.reports.data.row_groups import Row
from tests.made_runs import case, loaded, problem, row


def made(*shapes: dict[str, Any]) -> "pd.DataFrame":
    rows: list[Row] = [loaded(row(case("fused", problem(**one)))) for one in shapes]
    return of.cases(rows)


def test_a_case_is_a_line_with_types_by_column_and_its_row() -> None:
    frame = made({"seq_len": 128}, {"seq_len": 256})
    kinds = {name: str(frame.dtypes[name]) for name in ("peak_bytes", "kernel", "row")}
    assert kinds == {"peak_bytes": COUNT, "kernel": "string", "row": NESTED}
    assert "block_ms" not in frame
    assert [one["seq_len"] for one in frame["row"]] == [128, 256]
    assert TEXT.startswith(kinds["kernel"])


def test_without_rows_there_are_the_same_columns() -> None:
    assert of.cases([]).dtypes["seq_len"] == made({"seq_len": 1}).dtypes["seq_len"]


@pytest.mark.parametrize(
    ("shapes", "axes", "told"),
    [
        ([{"seq_len": 128}], ["seq_len"], ""),
        ([{"seq_len": 128, "heads": h} for h in (1, 8)], ["heads"], ""),  # d_k has its usual value
        (
            [{"seq_len": n, "batch": 1024 // n} for n in (128, 256)],
            ["seq_len"],
            "B = 8 at N = 128, B = 4 at N = 256",
        ),
        (
            [{"seq_len": n, "batch": 1024 // n} for n in (64, 128, 256, 512)],
            ["seq_len"],
            "B follows N",
        ),
        (
            [{"seq_len": n, "batch": b} for n in (128, 256) for b in (1, 2)],
            ["batch", "seq_len"],
            "",
        ),
        (
            [{"seq_len": 128, "mask": "none"}, {"seq_len": 128, "mask": "local", "window": 64}],
            ["mask"],
            "",  # the window is a detail of one mask
        ),
        (
            [{"seq_len": 128, "mask": "local", "window": window} for window in (32, 64)],
            ["window"],
            "",
        ),
    ],
)
def test_an_axis_names_problems_if_it_varies_and_follows_from_none_before_it(
    shapes: list[dict[str, Any]], axes: list[str], told: str
) -> None:
    frame = made(*shapes)
    assert of.independent(frame) == axes
    assert of.following(frame).replace("\u00a0", " ") == told


def test_a_problem_is_called_by_those_axes() -> None:
    frame = made({"seq_len": 1024, "heads": 8}, {"seq_len": 1024, "heads": 1})
    (first, _) = of.records(frame)
    assert of.place(first, ["seq_len", "heads"]).replace("\u00a0", " ") == "N = 1k, h = 8"
