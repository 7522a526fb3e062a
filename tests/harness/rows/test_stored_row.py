"""What the writer stores, the reader takes: everything else becomes an error row that says why."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.cases.case import Case, PlannedStudy, Wall
from attnbench.harness.rows.model import FIELDS
from attnbench.harness.rows.record import MOST_CHARACTERS, Planned, Record, Status, stored, written
from attnbench.harness.rows.run_files import parsed_row
from attnbench.harness.store.run_store import Store
from attnbench.impls.problem import Problem
from attnbench.reports.data.read import read_run
from tests.fakes.stored_runs import case, plan, record
from tests.faults.mutations import ODD, ODD_NUMBERS, ODD_TEXTS

DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"peak_bytes": 1.5}, "peak_bytes: found 1.5, wanted"),
        ({"peak_bytes": 1 << 70}, "peak_bytes: found 1180591620717411303424, wanted"),
        ({"predicted_peak_bytes": -(1 << 70)}, "predicted_peak_bytes: found -118059"),
        ({"predicted_peak_bytes": True}, "predicted_peak_bytes: found True, wanted"),
        ({"configuration": ["a fact"]}, "configuration: found ['a fact'], wanted"),
        ({"predicted_reason": 7}, "predicted_reason: found 7, wanted"),
        ({"kernel": b"flash"}, "kernel: found bytes, wanted what JSON has"),
        ({"error_ratio": float("nan")}, "error_ratio: not JSON (Out of range"),
        ({"tables": {"a": [float("inf")]}}, "tables: not JSON (Out of range"),
        ({"tables": {"a": DEEP}}, "tables: found lists in lists too deep"),
        ({"block_ms": [[[1.0, -1.0]]]}, "block_ms[0][0][1]: found -1.0, wanted"),
        ({"missing": {"sm_active_ratio": 3}}, "missing.sm_active_ratio: found 3, wanted"),
        (
            {"memory_missing": {"outside_bytes": []}},
            "memory_missing.outside_bytes: found [], wanted",
        ),
        ({"exactness": "roughly"}, "exactness: found 'roughly', wanted"),
        ({"graph_reason": "x" * (16 << 20)}, "graph_reason: found 16777218 bytes"),
    ],
)
def test_what_does_not_fit_is_an_error_that_names_the_field(
    values: dict[str, Any], why: str
) -> None:
    kept, line = stored(record(case(), **values, started_utc="2026-11-21T09:30:00Z", spent_s=2.5))
    row = parsed_row(line)
    assert (row["status"], kept.status) == ("error", Status.ERROR)
    assert row["reason"].startswith(f"its row does not fit the format: {why}")
    assert row["block_ms"] is None
    assert (row["started_utc"], row["spent_s"]) == ("2026-11-21T09:30:00Z", 2.5)
    assert len(line) < 1 << 16


def test_a_reason_that_is_not_text_is_an_error() -> None:
    odd: Any = 5
    row = parsed_row(stored(record(case(), "unsupported", odd))[1])
    assert row["status"] == "error"
    assert row["reason"].startswith("its row does not fit the format: reason: found 5, wanted")


def test_long_reasons_and_logs_are_shortened_and_stay_what_they_are() -> None:
    long = "begin" + "x" * (16 << 20) + "end"
    row = parsed_row(stored(record(case(), "unsupported", long, log_tail=long))[1])
    assert row["status"] == "unsupported"
    assert row["reason"].startswith("begin")
    assert row["reason"].endswith(f"... ({len(long)} characters)")
    assert row["log_tail"].endswith("end")
    assert max(len(row["reason"]), len(row["log_tail"])) < MOST_CHARACTERS + 100


def test_what_an_absurd_case_would_need_is_null_and_its_status_stays() -> None:
    problem = Problem(batch=1, seq_len=1 << 31, d_model=1024, heads=8)
    absurd = Case(backend="naive", problem=problem)
    row = parsed_row(stored(record(absurd, "predicted_oom", predicted_peak_bytes=1 << 67))[1])
    assert row["status"] == "predicted_oom"
    assert (row["work_flops"], row["predicted_peak_bytes"]) == (None, None)


def test_a_row_that_fits_is_stored_as_it_is() -> None:
    kept = record(case(), block_ms=[[[1.5, 2.5]]], peak_bytes=7)
    assert stored(kept) == (kept, stored(kept)[1])
    assert parsed_row(stored(kept)[1]) == kept.row()


@pytest.mark.parametrize("odd", [{}, {"peak_bytes": 1.5}])
def test_a_record_that_comes_with_its_line_is_stored_as_where_it_was_made(
    odd: dict[str, Any],
) -> None:
    made = record(case(), **{"block_ms": [[[1.5, 2.5]]], "peak_bytes": 7, **odd})
    came = pickle.loads(pickle.dumps(written(made)))
    there, line = stored(made)
    assert stored(came) == (came, line)
    assert (came.status, came.reason) == (there.status, there.reason)
    assert (came["block_ms"], came["peak_bytes"]) == (there["block_ms"], there["peak_bytes"])
    assert came.row() == parsed_row(line)


NOT_VALUES = ("attempt", "device", "block_ms", "memory_bytes")  # ours, or refused elsewhere
PLANNED: dict[str, Planned] = {
    "latency": case(),
    "wall": Wall(backend="fused", problem=case().problem),
    "study": PlannedStudy(study="precision", problem=case().problem),
}
NEEDED: dict[str, dict[str, Any]] = {
    "latency": record(case()).values,
    "wall": {"memory_bytes": 1 << 30, "probes": []},
    "study": {},
}


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.long] * (kind == "latency")) for kind in FIELDS]
)
def test_no_value_of_any_field_can_make_a_run_unreadable(kind: str) -> None:
    tried = 0
    fixed = {"status", "kind", "schema", "case", *NOT_VALUES, *PLANNED[kind].fields()}
    for name in FIELDS[kind].keys() - fixed:
        for odd in (*ODD, *ODD_NUMBERS, *ODD_TEXTS):
            values = {**NEEDED[kind], "reason": "made up", name: odd}
            if reason := values.pop("reason"):
                about: dict[str, Any] = {"planned": PLANNED[kind], "device": "cpu", "attempt": 1}
                made = Record(**about, status=Status.CRASHED, reason=reason, values=values)
                assert parsed_row(stored(made)[1])["case"] == PLANNED[kind].id
                tried += 1
    assert tried > 250


def test_a_run_with_such_rows_is_read_and_counts_them_as_errors(tmp_path: Path) -> None:
    cases = [case(number) for number in range(3)]
    store = Store.create(tmp_path, "odd", plan(cases))
    odd = ({"peak_bytes": 7}, {"peak_bytes": 7.5}, {"error_ratio": float("inf")})
    kept = store.append(record(one, **values) for one, values in zip(cases, odd, strict=True))
    store.close()
    assert [one.status for one in kept] == ["ok", "error", "error"]
    assert [row["status"] for row in read_run(store.path).rows] == ["ok", "error", "error"]


def test_a_tuple_is_stored_as_the_list_that_the_reader_finds() -> None:
    kept, line = stored(record(case(), configuration={"tiles": (1, 2)}))
    assert kept.status is Status.OK
    assert json.loads(line)["configuration"] == {"tiles": [1, 2]}
