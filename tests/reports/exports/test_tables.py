"""csv and json: the same table for spreadsheets and programs."""

import csv
import io
import json
from pathlib import Path

import pytest

from attnbench.reports.data.load import load
from attnbench.reports.exports import export
from tests.made_runs import case, many_problems, problem, quickstart, row, write_run


def test_csv_and_json_hold_every_case_and_agree(tmp_path: Path) -> None:
    run = quickstart(tmp_path)
    frame = load(run)
    table = list(csv.DictReader(io.StringIO(export(run, "csv").content)))
    documents = json.loads(export(run, "json-rows").content)
    assert (
        [one["case"] for one in table] == [one["case"] for one in documents] == list(frame["case"])
    )
    for text, document in zip(table, documents, strict=True):
        assert float(text["latency_ms"] or "nan") == pytest.approx(
            document["latency_ms"] or float("nan"), nan_ok=True
        )
        assert text["peak_bytes"] == (
            "" if document["peak_bytes"] is None else str(document["peak_bytes"])
        )
    kept_apart = {"block_ms", "hot_block_ms", "graph_block_ms", "conditions", "log_tail", "run"}
    assert not kept_apart & set(documents[0])
    assert documents[0]["causal"] is False
    assert table[0]["causal"] == "false"
    both = export([run, many_problems(tmp_path)], "csv").content
    assert str(both).startswith("run,case,backend,")


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
