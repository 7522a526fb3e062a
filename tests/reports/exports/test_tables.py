"""csv, json and md: the same table for spreadsheets, programs and people."""

import csv
import io
import json
import re
from pathlib import Path

import pytest

from attnbench.reports.data.load import load
from attnbench.reports.exports import NotExportable, export
from attnbench.reports.exports.md import MOST_CHARACTERS
from tests.made_runs import case, many_problems, problem, quickstart, row, write_run
from tests.reports.data.test_decode import decode_run


def text_of(run: Path | list[Path], name: str) -> str:
    content = export(run, name).content
    assert isinstance(content, str)
    return content


def test_csv_and_json_hold_every_case_and_agree(tmp_path: Path) -> None:
    run = quickstart(tmp_path)
    frame = load(run)
    table = list(csv.DictReader(io.StringIO(text_of(run, "csv"))))
    documents = json.loads(text_of(run, "json"))
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
    assert not {
        "block_ms",
        "hot_block_ms",
        "graph_block_ms",
        "conditions",
        "log_tail",
        "run",
    } & set(documents[0])
    assert documents[0]["causal"] is False
    assert table[0]["causal"] == "false"


def test_decode_steps_have_their_share_of_bandwidth_with_its_interval(tmp_path: Path) -> None:
    run = decode_run(tmp_path)
    names = [f"decode_bandwidth_{part}ratio" for part in ("low_", "", "high_")]
    for one in json.loads(text_of(run, "json")):
        low, value, high = (one[name] for name in names)
        assert low < value < high
    table = list(csv.DictReader(io.StringIO(text_of(run, "csv"))))
    assert {round(float(one["decode_bandwidth_ratio"]), 3) for one in table} == {0.5, 0.25}
    assert {one["decode_fits_in_cache"] for one in table} == {"true", "false"}
    markdown = text_of(run, "md")
    assert "of bandwidth | its 95 % low | its 95 % high" in markdown
    assert "50.0 %" in markdown
    extra = json.loads(text_of(run, "pytest-benchmark"))["benchmarks"][0]["extra_info"]
    assert extra["decode_bandwidth_ratio"] == pytest.approx(0.5)


def test_several_runs_have_a_column_run(tmp_path: Path) -> None:
    runs = [quickstart(tmp_path), many_problems(tmp_path)]
    documents = json.loads(text_of(runs, "json"))
    assert {one["run"] for one in documents} == {run.name for run in runs}
    assert len(documents) == sum(len(load(run)) for run in runs)
    assert {line["run"] for line in csv.DictReader(io.StringIO(text_of(runs, "csv")))} == {
        run.name for run in runs
    }


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "＝1", "\r=1"])
def test_no_cell_of_text_is_a_formula(tmp_path: Path, cell: str) -> None:
    planned = case("sdpa", problem(64))
    run = write_run(tmp_path, [planned], [row(planned, "error", reason=cell)])
    (line,) = csv.DictReader(io.StringIO(text_of(run, "csv")))
    assert line["reason"].startswith("'")


def test_numbers_below_zero_stay_numbers(tmp_path: Path) -> None:
    planned = case("sdpa", problem(64))
    run = write_run(tmp_path, [planned], [row(planned, a_probe_c=-5)])
    (line,) = csv.DictReader(io.StringIO(text_of(run, "csv")))
    assert line["a_probe_c"] == "-5"


def test_json_has_null_where_nothing_was_measured(tmp_path: Path) -> None:
    text = text_of(quickstart(tmp_path), "json")
    assert "NaN" not in text
    assert any(one["latency_ms"] is None for one in json.loads(text))


def test_markdown_is_one_table_with_as_many_cells_in_every_line(tmp_path: Path) -> None:
    lines = [
        line for line in text_of(quickstart(tmp_path), "md").splitlines() if line.startswith("|")
    ]
    assert len(lines) == 82
    assert len({line.count(" | ") for line in lines}) == 1


def test_markdown_fits_a_comment_and_says_how_much_is_left_out(tmp_path: Path) -> None:
    cases = [case("sdpa", problem(n)) for n in range(64, 64 + 1000)]
    done = export(write_run(tmp_path, cases, [row(one) for one in cases]), "md")
    assert isinstance(done.content, str)
    assert MOST_CHARACTERS - 1000 < len(done.content) < 65_536
    shown = len(
        re.findall(r"^\| sdpa", done.content, re.MULTILINE)
        or re.findall(r"^\| [0-9]", done.content, re.MULTILINE)
    )
    assert f"{1000 - shown} more rows left out" in done.content
    assert f"{1000 - shown} more rows left out" in done.notes[0]


def test_an_unknown_format_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(NotExportable, match="csv, github-benchmark, json, md"):
        export(quickstart(tmp_path), "xlsx")
