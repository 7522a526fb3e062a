"""Rows of every kind: complete, in the order of the schema, and never contradictory. What does not
fit the format becomes an error row that says why, and what is written can be read.
"""

from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.cases.case import Case, PlannedStudy, Wall
from attnbench.harness.rows.model import FIELDS
from attnbench.harness.rows.record import MOST_CHARACTERS, Planned, Record, Status
from attnbench.harness.rows.run_files import parsed_row
from attnbench.harness.rows.run_store import Store
from attnbench.impls.problem import Problem
from attnbench.reports.data.run_meta import read_run
from tests.fakes.stored_runs import case, plan, record
from tests.faults.mutations import ODD, ODD_NUMBERS, ODD_TEXTS

PLANNED: dict[str, Planned] = {
    "latency": case(),
    "wall": Wall(backend="fused", problem=case().problem),
    "study": PlannedStudy(study="precision", problem=case().problem),
}
DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]


def of(kind: str, status: Status = Status.OK, reason: str = "", **values: Any) -> Record:
    needed = {"device": "cpu", "attempt": 2} | ({"memory_bytes": 1} if kind == "wall" else {})
    return Record.of(PLANNED[kind], status, reason, needed | values)


@pytest.mark.parametrize("kind", FIELDS)
def test_a_row_has_every_field_of_its_kind_in_order_and_no_other(kind: str) -> None:
    made = of(kind, Status.INTERRUPTED, "stopped")
    assert parsed_row(made.line) == made.row
    assert list(made.row) == list(FIELDS[kind])
    found = [made[name] for name in ("kind", "attempt", "status", "reason", "spent_s")]
    assert found == [kind, 2, "interrupted", "stopped", None]
    assert [made[name] for name in ("findings", "probes")].count([]) == (kind != "latency")


def test_a_field_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\['findings'\]: not in a row of kind latency"):
        of("latency", findings=[])


@pytest.mark.parametrize(
    ("kind", "status", "reason", "values", "why"),
    [
        ("latency", Status.OK, "why", {}, "status: found ok with reason 'why'"),
        ("latency", Status.OOM, "", {}, "status: found oom with reason ''"),
        ("latency", Status.OOM, "why", {"block_ms": [[[1.0]]]}, "block_ms: found samples with"),
        ("latency", Status.OK, "", {"error_ratio": 3, "error_limit_ratio": 2}, "error_ratio: fou"),
        ("wall", Status.OK, "", {"seq_len_low": 8}, "status: found ok without a length that fits"),
        ("wall", Status.OK, "", {"limited_by": "time"}, "status: found ok without a length"),
    ],
)
def test_status_reason_and_values_that_disagree_are_an_error(
    kind: str, status: Status, reason: str, values: dict[str, Any], why: str
) -> None:
    made = of(kind, status, reason, **values)
    assert made.status is Status.ERROR
    assert made.reason.startswith(f"its row does not fit the format: {why}")


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"peak_bytes": 1.5}, "peak_bytes: found 1.5, wanted"),
        ({"peak_bytes": 1 << 70}, "peak_bytes: found 1180591620717411303424, wanted"),
        ({"predicted_peak_bytes": -(1 << 70)}, "predicted_peak_bytes: found -118059"),
        ({"predicted_peak_bytes": True}, "predicted_peak_bytes: found True, wanted"),
        ({"configuration": ["a fact"]}, "configuration: found ['a fact'], wanted"),
        ({"predicted_reason": 7}, "predicted_reason: found 7, wanted"),
        ({"kernel": b"flash"}, "kernel: found b'flash', wanted"),
        ({"error_ratio": float("nan")}, "error_ratio: not JSON (Out of range"),
        ({"tables": {"a": [float("inf")]}}, "tables: not JSON (Out of range"),
        ({"tables": {"a": b"b"}}, "tables: not JSON (Object of type bytes"),
        ({"tables": {"a": DEEP}}, "tables: not JSON (maximum recursion depth"),
        ({"tables": {"a": 10**400}}, "not valid JSON (a number of 401 digits)"),
        ({"block_ms": [[[1.0, -1.0]]]}, "block_ms[0][0][1]: found -1.0, wanted"),
        ({"missing": {"sm_active_ratio": 3}}, "missing.sm_active_ratio: found 3, wanted"),
        ({"memory_missing": {"outside_bytes": []}}, "memory_missing.outside_bytes: found []"),
        ({"exactness": "roughly"}, "exactness: found 'roughly', wanted"),
        ({"graph_reason": "x" * (16 << 20)}, "graph_reason: found 16777218 bytes"),
    ],
)
def test_what_does_not_fit_is_an_error_that_names_the_field(
    values: dict[str, Any], why: str
) -> None:
    made = record(case(), **values, started_utc="2026-11-21T09:30:00Z", spent_s=2.5)
    assert parsed_row(made.line) == made.row
    assert made.status is Status.ERROR
    assert made.reason.startswith(f"its row does not fit the format: {why}")
    assert (made["block_ms"], made["spent_s"]) == (None, 2.5)
    assert made["started_utc"] == "2026-11-21T09:30:00Z"
    assert len(made.line) < 1 << 16


def test_long_reasons_and_logs_are_shortened_and_stay_what_they_are() -> None:
    long = "begin" + "x" * (16 << 20) + "end"
    made = record(case(), "unsupported", long, log_tail=long)
    assert made.status is Status.UNSUPPORTED
    assert made.reason.startswith("begin")
    assert made.reason.endswith(f"... ({len(long)} characters)")
    assert made["log_tail"].endswith("end")
    assert max(len(made.reason), len(made["log_tail"])) < MOST_CHARACTERS + 100


def test_what_an_absurd_case_would_need_is_null_and_its_status_stays() -> None:
    problem = Problem(batch=1, seq_len=1 << 31, d_model=1024, heads=8)
    absurd = Case(backend="naive", problem=problem)
    made = record(absurd, "predicted_oom", predicted_peak_bytes=1 << 67)
    assert made.status is Status.PREDICTED_OOM
    assert (made["work_flops"], made["predicted_peak_bytes"]) == (None, None)


NOT_VALUES = ("attempt", "device", "block_ms", "memory_bytes")  # ours, or refused elsewhere


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.long] * (kind == "latency")) for kind in FIELDS]
)
def test_no_value_of_any_field_can_make_a_run_unreadable(kind: str) -> None:
    fixed = {"status", "reason", "kind", "schema", *NOT_VALUES, *PLANNED[kind].fields()}
    for name in FIELDS[kind].keys() - fixed:
        for odd in (*ODD, *ODD_NUMBERS, *ODD_TEXTS):
            made = of(kind, Status.CRASHED, "made up", **{name: odd})
            assert parsed_row(made.line)["case"] == PLANNED[kind].id


def test_a_run_with_such_rows_is_read_and_counts_them_as_errors(tmp_path: Path) -> None:
    store = Store.create(tmp_path, "odd", plan([case(number) for number in range(3)]))
    odd = ({"peak_bytes": 7}, {"peak_bytes": 7.5}, {"error_ratio": float("inf")})
    store.append(record(case(number), **values) for number, values in enumerate(odd))
    store.close()
    assert [row["status"] for row in read_run(store.path).rows] == ["ok", "error", "error"]
