"""reports/exports/parquet.py: pyarrow and pandas read the same table, with types and samples."""

import io
import json
from pathlib import Path

import pandas as pd
import pytest

from attnbench.harness.rows.model import SAMPLES
from attnbench.reports.data.columns import COLUMNS
from attnbench.reports.data.load import load
from attnbench.reports.exports import export
from attnbench.reports.exports.parquet import METADATA
from tests.made_runs import case, problem, quickstart, row, write_run

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'attnbench[parquet]'")
pq = pytest.importorskip("pyarrow.parquet")


def read(*runs: Path):
    return pq.read_table(io.BytesIO(export(list(runs), "parquet").content))


def test_every_value_comes_back_and_missing_is_null(tmp_path: Path) -> None:
    run = quickstart(tmp_path)
    frame, table = load(run), read(run)
    assert table.column_names == list(frame)
    for name in table.column_names:
        wanted = [
            None if value is pd.NA or value != value else value for value in frame[name].tolist()
        ]
        found = table[name].to_pylist()
        if frame[name].dtype == object and name not in SAMPLES:
            found = [value and json.loads(value) for value in found]
        assert found == wanted, name
    assert table["block_ms"].to_pylist() == frame["block_ms"].tolist()
    facts = json.loads(table.schema.metadata[METADATA])
    assert {name: fact["scenario"]["name"] for name, fact in facts.items()} == {
        run.name: "quickstart"
    }


def test_types_are_those_of_the_table_even_where_nothing_was_measured(tmp_path: Path) -> None:
    planned = case("sdpa", problem(64))
    table = read(write_run(tmp_path, [planned], [row(planned, "oom")]))
    kinds = {
        "string[python]": pa.string(),
        "Int64": pa.int64(),
        "float64": pa.float64(),
        "boolean": pa.bool_(),
    }
    for name in table.column_names:
        if COLUMNS[name].dtype in kinds:
            assert table.schema.field(name).type == kinds[COLUMNS[name].dtype], name
    assert table.schema.field("block_ms").type == pa.list_(pa.list_(pa.list_(pa.float64())))


def test_half_a_surrogate_pair_is_spelled_out(tmp_path: Path) -> None:
    planned = case("sdpa", problem(64))
    run = write_run(tmp_path, [planned], [row(planned, "error", reason="a\ud800b")])
    assert read(run)["reason"].to_pylist() == ["a\\ud800b"]
