"""reports/audit/subjects/kernel_limits.py: bounds of tensor cores, from rows of an audit."""

from typing import Any

import pytest

from attnbench.harness.rows.record import Status
from attnbench.reports.audit.subjects.kernel_limits import (
    bound,
    finding,
    findings,
    of_usual_widths,
    specialized,
    why_no_bound,
)
from attnbench.reports.data.row_groups import Row
from tests.reports.fake_kernels import plan, row

CYCLES = {64: (512.0, 528.0, 478.0), 128: (1024.0, 528.0, 557.0)}
REGISTERS = {64: 191, 128: 255}
STAGES = {64: 3, 128: 2}
SHARED = {64: 114_688, 128: 163_840}
SMALL = {"thread_register_count": 120, "block_shared_bytes": 65_536}


def cycles(tensor: float, exponential: float, issue: float) -> dict[str, Any]:
    names = ("loop_tensor_cycles", "loop_exponential_cycles", "loop_issue_cycles")
    taken = dict(zip(names, (tensor, exponential, issue), strict=True))
    return {**taken, "loop_overlaps": False}


def planned(width: int, *, rank: int = 1, gpu: str = "9.0", **changes: Any) -> dict[str, Any]:
    """A tile of 128 x 128 with 8 warps; `changes` of its configuration."""
    made = plan(gpu, rank=rank, d_k=width, d_v=width, causal=False)
    made["config"] |= {"block_q": 128, "block_kv": 128, "stages": STAGES[width], **changes}
    return made


def forward(width: int, *, plan: dict[str, Any] | None = None, **changes: Any) -> Row:
    facts = {"thread_register_count": REGISTERS[width], "block_shared_bytes": SHARED[width]}
    return row(plan or planned(width), **cycles(*CYCLES[width]) | facts | changes)


def in_gluon(width: int) -> Row:
    """Two consumers of four warps, and a producer that brings the block to twelve."""
    plan = planned(width, rank=2, descriptors=True, gluon=True)
    return forward(width, plan=plan, block_warp_count=12, thread_register_count=168)


def test_the_bound_is_that_of_the_row_and_one_block_more_fills_gaps() -> None:
    for width, more in ((64, (512 / 528, "exponentials")), (128, (1.0, "tensor"))):
        found = forward(width)
        one = bound(found)
        assert one.busy_ratio == found["tensor_busy_most_ratio"]
        assert one.limit == found["tensor_busy_limited_by"] == "turns"
        assert (pytest.approx(one.more_ratio), one.more_limit) == more
    consumers = bound(in_gluon(128))
    assert (consumers.busy_ratio, consumers.limit) == (1, "tensor")


@pytest.mark.parametrize(
    ("gpu", "changes", "why"),
    [
        ("8.0", {}, "products are HMMA"),
        ("10.0", {}, "products are UTCHMMA"),
        ("9.0", {}, "audit again"),
        ("9.0", {"instructions": None}, "was not read"),
        ("9.0", {"block_shared_bytes": 300 << 10}, "fits an SM"),
    ],
)
def test_a_row_without_a_bound_says_why(gpu: str, changes: dict[str, Any], why: str) -> None:
    found = row(plan(gpu), **changes)
    assert bound(found) is None
    assert why in why_no_bound(found)
    failed = row(plan("9.0"), Status.ERROR, "CompilationError: a bug")
    assert bound(failed) is None
    assert "a bug" in why_no_bound(failed)


@pytest.mark.parametrize("value", [None, 0])
@pytest.mark.parametrize(
    "name",
    [
        *("block_warp_count", "sm_block_count", "loop_tensor_cycles", "limited_by"),
        *("loop_issue_cycles", "thread_register_count", "instructions", "loop_overlaps"),
    ],
)
def test_a_field_without_a_value_is_no_error(name: str, value: Any) -> None:
    found = forward(64) | {name: value}
    one = bound(found)
    assert one is None or (0 < one.busy_ratio <= 1 and finding(found, one))


def test_widths_are_compared_where_exponentials_weigh_more_in_one() -> None:
    assert len(list(findings([forward(128), forward(64)]))) == 3
    same = forward(64, **cycles(512.0, 264.0, 300.0))
    assert len(list(findings([same, forward(128)]))) == 2
    (said,) = findings([forward(64, **SMALL, **cycles(256.0, 272.0, 310.0))])
    assert "the instructions, 310 in all" in said
    assert list(findings([row(plan("9.0")), row(plan("8.0"))])) == []
    assert list(findings([])) == []


def test_the_first_that_fits_and_its_specialized_neighbour_are_shown() -> None:
    rows = [forward(64), forward(128), in_gluon(128)]
    shown = of_usual_widths(rows)
    assert shown == rows[:2]
    assert list(specialized(rows, shown)) == [in_gluon(128)]
    second = forward(128, plan=planned(128, rank=2, stages=3))
    first = forward(128, block_shared_bytes=300 << 10)
    assert of_usual_widths([first, second, forward(64)]) == [forward(64), second]
