"""reports/export.py: the same table for programs and people."""

import csv
import io
import json
from pathlib import Path

import pytest

from attnbench.reports.export import export
from attnbench.reports.load import load

from .fake_runs import quickstart


def test_csv_and_json_hold_every_case_and_agree(tmp_path: Path) -> None:
    run = quickstart(tmp_path)
    frame = load(run)
    table = list(csv.DictReader(io.StringIO(export(run, "csv"))))
    documents = json.loads(export(run, "json"))
    assert [one["case"] for one in table] == [one["case"] for one in documents] == list(frame["case"])
    for text, document in zip(table, documents, strict=True):
        assert float(text["latency_ms"] or "nan") == pytest.approx(document["latency_ms"] or float("nan"), nan_ok=True)
        assert text["peak_bytes"] == ("" if document["peak_bytes"] is None else str(document["peak_bytes"]))
    assert not {"block_ms", "hot_block_ms", "graph_block_ms", "conditions", "log_tail"} & set(documents[0])
    assert documents[0]["causal"] is False
    assert table[0]["causal"] == "false"


def test_json_has_null_where_nothing_was_measured(tmp_path: Path) -> None:
    text = export(quickstart(tmp_path), "json")
    assert "NaN" not in text
    assert any(one["latency_ms"] is None for one in json.loads(text))


def test_markdown_is_one_table_with_as_many_cells_in_every_line(tmp_path: Path) -> None:
    lines = [line for line in export(quickstart(tmp_path), "md").splitlines() if line.startswith("|")]
    assert len(lines) == 82
    assert len({line.count(" | ") for line in lines}) == 1


def test_an_unknown_format_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="csv, json, md"):
        export(quickstart(tmp_path), "xlsx")  # type: ignore[arg-type]
