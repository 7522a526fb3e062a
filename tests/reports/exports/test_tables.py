"""csv and json: the same table for spreadsheets and programs."""

import csv
import io
import json
from pathlib import Path

import pytest

from attnbench.reports.exports import export
from tests.made_runs import case, problem, quickstart, row, write_run


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


def test_json_holds_every_case_with_the_numbers_of_csv(tmp_path: Path) -> None:
    run = quickstart(tmp_path, lengths=(512, 8192))
    table = list(csv.DictReader(io.StringIO(export(run, "csv").content)))
    documents = json.loads(export(run, "json-rows").content)
    for text, document in zip(table, documents, strict=True):
        assert text["case"] == document["case"]
        for name in ("latency_ms", "peak_bytes"):
            known = document[name]
            assert text[name] == "" if known is None else float(text[name]) == pytest.approx(known)
    assert not {"block_ms", "conditions", "log_tail", "run"} & set(documents[0])
    assert (documents[0]["causal"], table[0]["causal"]) == (False, "false")
