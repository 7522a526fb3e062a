"""csv and json: the same table for spreadsheets and programs."""

import csv
import io
from pathlib import Path

import pytest

from attnbench.reports.exports import export
from tests.made_runs import case, problem, row, write_run


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "＝1", "\r=1"])
def test_no_cell_of_text_is_a_formula(tmp_path: Path, cell: str) -> None:
    planned = case("sdpa", problem(64))
    run = write_run(tmp_path, [planned], [row(planned, "error", reason=cell)])
    (line,) = csv.DictReader(io.StringIO(export(run, "csv").content))
    assert line["reason"].startswith("'")


def test_numbers_below_zero_stay_numbers(tmp_path: Path) -> None:
    planned = case("sdpa", problem(64))
    run = write_run(tmp_path, [planned], [row(planned, a_probe_c=-5)])
    (line,) = csv.DictReader(io.StringIO(export(run, "csv").content))
    assert line["a_probe_c"] == "-5"
