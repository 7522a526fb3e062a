"""reports/judging/over.py: cases over their bases; counts are integers from the file on."""

import csv
import io
import json
from pathlib import Path

import pytest

from attnbench.harness.rows.model import AXES, FIELDS
from attnbench.reports.comparison.compare import compare_runs
from attnbench.reports.comparison.gate import Gate
from attnbench.reports.comparison.text import as_json
from attnbench.reports.contrasts import against_one_head
from attnbench.reports.data.columns import COUNT, DTYPES
from attnbench.reports.data.load import load
from attnbench.reports.exports import export
from attnbench.reports.judging.over import COUNTS, cases_of, over
from attnbench.reports.subjects._contrasts import sentence
from tests.made_runs import case, grid, loaded, problem, row, write_run
from tests.reports.rendering import rows_of

LARGE = 2**53  # up to here a float64 holds every integer
COUNTED = [  # of a row, without what the plan says
    name
    for name, field in FIELDS["latency"].items()
    if field.kind == "int" and name not in (*AXES, "schema", "attempt", "replica")
]


def counting(parent: Path, more: int) -> Path:
    planned = case("fused", problem(256))
    counts = dict.fromkeys(COUNTED, LARGE + 1) | {"peak_bytes": LARGE + more}
    return write_run(parent, [planned], [row(planned, **counts)])


def test_a_count_that_no_float_holds_comes_out_of_every_way_as_it_is(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    run = counting(tmp_path, 1)
    frame = load(run)
    (text,) = csv.DictReader(io.StringIO(export(run, "csv").content))
    (document,) = json.loads(export(run, "json-rows").content)
    table = pq.read_table(io.BytesIO(export(run, "parquet").content))
    for name in COUNTED:
        assert frame.dtypes[name] == COUNT
        ways = [frame[name].tolist(), [int(text[name])], [document[name]], table[name].to_pylist()]
        assert ways == [[LARGE + 1]] * len(ways), name
    facts = {one["quantity"]: one["value"] for one in json.loads(export(run, "json").content)}
    for name in ("input_bytes", "peak_bytes", "predicted_peak_bytes", "outside_bytes"):
        assert facts[name] == LARGE + 1
    assert facts["needed_bytes"] == 3 * LARGE + 3


def test_a_byte_more_than_a_float_tells_fails_the_gate(tmp_path: Path) -> None:
    base, new = (counting(tmp_path / str(more), more) for more in (0, 1))
    found = compare_runs(base, new, Gate(margins={"peak_bytes": 0.0}))
    assert [one.verdict for one in found.gate_result.regressions] == ["more"]
    (said,) = [one for one in json.loads(as_json(found))["cases"] if one["metric"] == "peak_bytes"]
    assert (said["base"], said["new"]) == (2 * LARGE + 1, 2 * LARGE + 2)


@pytest.mark.parametrize(("more", "text"), [(0, "×8 in fused"), (1, "×8.00 in fused")])
def test_only_a_count_that_its_base_divides_is_so_many_times(
    tmp_path: Path, more: int, text: str
) -> None:
    cases = grid(("fused",), (256,), (1, 8))
    counts = [{"peak_bytes": LARGE}, {"peak_bytes": 8 * LARGE + more}]
    rows = [row(one, **count) for one, count in zip(cases, counts, strict=True)]
    ((_, some),) = against_one_head(rows_of(write_run(tmp_path, cases, rows)))
    assert text in sentence(some)


def test_each_case_is_beside_the_first_base_that_is_equal() -> None:
    cases = [loaded(row(one, peak_bytes=LARGE + 1)) for one in grid(["fused"], (512, 128, 64))]
    bases = [loaded(row(one, peak_bytes=LARGE)) for one in grid(["sdpa", "naive"], (64, 512))]
    frames = [cases_of(some, ["seq_len"]) for some in (cases, bases)]
    assert {frames[0].dtypes[name].name for name in COUNTS} == {DTYPES[COUNTS[0]]} == {COUNT}
    pairs = over(*frames, ["seq_len"])
    assert pairs["seq_len"].tolist() == [512, 64]
    assert [one["backend"] for one in pairs["row_base"]] == ["sdpa"] * 2
    assert all(pairs["peak_bytes_ratio"] > 1)
    assert pairs["work_flops_ratio"].tolist() == [1.0, 1.0]
