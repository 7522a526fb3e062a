"""reports/subjects/_probe_tables.py: the kernels of a case per call, and tables of other probes."""

from typing import Any

import pytest

from attnbench.reports.subjects._probe_tables import OTHERS, kernel_table, other_tables
from tests.reports.subjects.test_utilization import kernel, kernel_tables


def of(*entries: dict[str, Any], calls: int | None = 5, **others: Any) -> dict[str, Any]:
    return {"tables": kernel_tables(*entries, calls=calls, **others)}


def test_kernels_are_counted_per_call_and_the_longest_is_first() -> None:
    found = kernel_table(of(kernel("softmax", 10, 1.0), kernel("gemm", 5, 3.0)), most=10)
    assert found is not None
    assert [
        (one.name, one.launches_per_call, one.time_per_call_ms, one.time_share)
        for one in found.kernels
    ] == [("gemm", 1, 0.6, 0.75), ("softmax", 2, 0.2, 0.25)]
    assert (found.launches_per_call, found.rest, found.rest_count) == (3, None, 0)


def test_kernels_beyond_the_first_ones_are_summed_up() -> None:
    entries = [kernel(f"k{time}", 5, float(time)) for time in range(1, 5)]
    found = kernel_table(of(*entries), most=2)
    assert found is not None
    assert [one.name for one in found.kernels] == ["k4", "k3"]
    assert found.rest is not None
    assert (found.rest_count, found.rest.launches_per_call) == (2, 2)
    assert found.rest.time_share == pytest.approx(0.3)


def test_the_probes_own_sum_of_others_is_never_one_of_the_first() -> None:
    found = kernel_table(of(kernel(OTHERS, 50, 9.0), kernel("gemm", 5, 1.0)), most=10)
    assert found is not None
    assert [one.name for one in found.kernels] == ["gemm"]
    assert found.rest is not None
    assert found.rest.time_share == pytest.approx(0.9)


@pytest.mark.parametrize("calls", [None, 0])
def test_without_the_number_of_calls_there_are_shares_alone(calls: int | None) -> None:
    found = kernel_table(of(kernel("gemm", 5, 3.0), calls=calls), most=10)
    assert found is not None
    (only,) = found.kernels
    assert (only.launches_per_call, only.time_per_call_ms, only.time_share) == (None, None, 1)


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"tables": None},
        {"tables": {"kernel_table": None}},
        {"tables": {"kernel_table": 3}},
        of(),
        of({"name": "gemm", "time_ms": None}),
    ],
)
def test_a_row_without_kernels_has_no_table(row: dict[str, Any]) -> None:
    assert kernel_table(row, most=10) is None


def test_tables_of_other_probes_are_lists_of_objects() -> None:
    row = of(kernel("gemm", 5, 1.0), hop_table=[{"hop": 1}, 3], none_table=None, empty_table=[])
    assert other_tables(row) == {"hop_table": [{"hop": 1}]}
