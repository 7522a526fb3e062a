"""reports/judging/over.py: cases over their bases; counts are integers from the file on."""

import csv
import io
import json
from pathlib import Path

import pytest

from attnbench.harness.rows.model import AXES, FIELDS
from attnbench.reports.comparison.compare import Criteria, compare_runs
from attnbench.reports.comparison.document import as_json
from attnbench.reports.comparison.verdict import Gate
from attnbench.reports.contrasts import Contrast
from attnbench.reports.data.columns import COUNT
from attnbench.reports.data.load import load
from attnbench.reports.exports import export
from attnbench.reports.exports._answers import SIZES_BYTES
from attnbench.reports.judging.over import COUNTS, cases_of, over
from attnbench.reports.subjects._contrasts import sentence
from tests.made_runs import grid, loaded, row, write_run

LARGE = 2**53  # up to here a float64 holds every integer
COUNTED = {name for name, field in FIELDS["latency"].items() if field.kind == "int"}
COUNTED -= {*AXES, "schema", "attempt", "replica"}  # what the plan says


def counting(parent: Path, more: int) -> Path:
    planned = grid(["fused"], [256])
    counts = dict.fromkeys(COUNTED, LARGE + 1) | {"peak_bytes": LARGE + more}
    return write_run(parent, planned, [row(planned[0], **counts)])


def test_a_count_that_no_float_holds_comes_out_of_every_way_as_it_is(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    run = counting(tmp_path, 1)
    frame = load(run)
    (text,) = csv.DictReader(io.StringIO(export(run, "csv").content))
    (document,) = json.loads(export(run, "json-rows").content)
    table = pq.read_table(io.BytesIO(export(run, "parquet").content))
    for name in COUNTED:
        assert frame.dtypes[name] == COUNT
        ways = [frame[name][0], int(text[name]), document[name], table[name][0].as_py()]
        assert ways == [LARGE + 1] * 4
    facts = {one["quantity"]: one["value"] for one in json.loads(export(run, "json").content)}
    assert {facts[name] for name in SIZES_BYTES} == {LARGE + 1, 3 * (LARGE + 1)}


def test_a_byte_more_than_a_float_tells_fails_the_gate(tmp_path: Path) -> None:
    runs = (counting(tmp_path / str(more), more) for more in (0, 1))
    found = compare_runs(*runs, Criteria(gate=Gate(margins={"peak_bytes": 0.0})))
    assert not found.gate_result.passed
    assert f'"base": {2 * LARGE + 1}, "new": {2 * LARGE + 2}' in as_json(found)


def test_only_a_count_that_its_base_divides_is_so_many_times() -> None:
    one, eight = grid(["fused"], [256], (1, 8))
    base = row(one, peak_bytes=LARGE)
    for more, text in enumerate(("×8 in", "×8.00 in")):
        many = row(eight, peak_bytes=8 * LARGE + more)
        assert text in sentence([Contrast(axis="heads", row=many, base=base)])


def test_each_case_is_beside_the_first_base_that_is_equal() -> None:
    cases = [loaded(row(one, peak_bytes=LARGE + 1)) for one in grid(["fused"], (512, 128, 64))]
    bases = [loaded(row(one, peak_bytes=LARGE)) for one in grid(["sdpa", "naive"], (64, 512))]
    frames = [cases_of(some, ["seq_len"]) for some in (cases, bases)]
    assert {*map(str, frames[0][[*COUNTS]].dtypes)} == {COUNT}
    pairs = over(*frames, ["seq_len"])
    assert {one["backend"] for one in pairs["row_base"]} == {"sdpa"}
    assert all(pairs["peak_bytes_ratio"] > 1)
    assert pairs[["seq_len", "work_flops_ratio"]].values.tolist() == [[512, 1], [64, 1]]
