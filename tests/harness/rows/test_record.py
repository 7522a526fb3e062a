"""Rows of every kind: complete, in the order of the schema, and never contradictory."""

from typing import Any

import pytest

from attnbench.harness.cases.case import Case, PlannedStudy, Wall
from attnbench.harness.rows.model import FIELDS
from attnbench.harness.rows.record import Planned, Record, Status
from attnbench.impls.problem import Problem

PROBLEM = Problem(batch=1, seq_len=64, d_model=32, heads=2)
PLANNED: dict[str, Planned] = {
    "latency": Case(backend="fused", problem=PROBLEM),
    "wall": Wall(backend="fused", problem=PROBLEM),
    "study": PlannedStudy(study="precision", problem=PROBLEM),
}


def record(kind: str, status: Status = Status.OK, reason: str = "", **values: Any) -> Record:
    return Record(
        planned=PLANNED[kind], device="cpu", attempt=2, status=status, reason=reason, values=values
    )


@pytest.mark.parametrize("kind", FIELDS)
def test_a_row_has_every_field_of_its_kind_in_order_and_no_other(kind: str) -> None:
    row = record(kind, Status.INTERRUPTED, "stopped").row()
    assert list(row) == list(FIELDS[kind])
    assert (row["kind"], row["attempt"], row["status"], row["reason"]) == (
        kind,
        2,
        "interrupted",
        "stopped",
    )


def test_what_was_not_said_is_null_or_empty_by_its_type() -> None:
    row = record("study").row()
    assert (row["findings"], row["spent_s"], row["log_tail"]) == ([], None, None)
    assert record("latency").row()["predicted_reason"] == ""


def test_a_field_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\['findings'\]: not in a row of kind latency"):
        record("latency", findings=[])


@pytest.mark.parametrize(
    ("kind", "status", "reason", "values", "complaint"),
    [
        ("latency", Status.OK, "why", {}, "every status but ok has a reason"),
        ("latency", Status.OOM, "", {}, "every status but ok has a reason"),
        ("latency", Status.OOM, "why", {"block_ms": [[[1.0]]]}, "samples with status oom"),
        ("wall", Status.OK, "", {"seq_len_low": 8}, "without a length that fits and what limits"),
        ("wall", Status.OK, "", {"limited_by": "time"}, "without a length that fits"),
    ],
)
def test_status_reason_and_values_that_disagree_are_refused(
    kind: str, status: Status, reason: str, values: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        record(kind, status, reason, **values)
