"""reports/analysis/kernel_step.py: tiles, cycles and bounds from a row of an audit."""

from typing import Any

import pytest

from attnbench.harness.audit.main_loop import most_busy
from attnbench.harness.rows.record import Status
from attnbench.reports.analysis.kernel_step import (
    buffers,
    is_specialized,
    step,
    tiles,
    why_no_step,
    widths,
    with_another_block,
)
from attnbench.reports.data.row_groups import Row
from tests.reports.fake_kernels import plan, row

CYCLES = {64: (512.0, 528.0, 478.0), 128: (1024.0, 528.0, 557.0)}
REGISTERS = {64: 191, 128: 255}
STAGES = {64: 3, 128: 2}
SHARED = {64: 114_688, 128: 163_840}


def cycles(tensor: float, exponential: float, issue: float, **more: Any) -> dict[str, Any]:
    names = ("loop_tensor_cycles", "loop_exponential_cycles", "loop_issue_cycles")
    taken = dict(zip(names, (tensor, exponential, issue), strict=True))
    return {**taken, "loop_overlaps": False, **more}


def planned(width: int, *, rank: int = 1, gpu: str = "9.0", **changes: Any) -> dict[str, Any]:
    """A tile of 128 x 128 with 8 warps; `changes` of its configuration."""
    made = plan(gpu, rank=rank, d_k=width, d_v=width, causal=False)
    made["config"] |= {"block_q": 128, "block_kv": 128, "stages": STAGES[width], **changes}
    return made


def forward(width: int, *, plan: dict[str, Any] | None = None, **changes: Any) -> Row:
    facts = {
        **cycles(*CYCLES[width]),
        "thread_register_count": REGISTERS[width],
        "block_shared_bytes": SHARED[width],
    }
    return row(plan or planned(width), **facts | changes)


def in_gluon(width: int) -> Row:
    """Two consumers of four warps, and a producer that brings the block to twelve."""
    plan = planned(width, rank=2, descriptors=True, gluon=True)
    return forward(width, plan=plan, block_warp_count=12, thread_register_count=168)


def part(tensor: float, exponential: float, issue: float) -> dict[str, float]:
    names = ("tensor_cycles", "exponential_cycles", "issue_cycles")
    return dict(zip(names, (tensor, exponential, issue), strict=True))


# Of heads of 64; those of 128 have twice the products.
PARTS = {
    "grad_q": [part(512.0, 512.0, 400.0), part(256.0, 0.0, 35.0)],
    "grad_kv": [part(128.0, 256.0, 300.0), part(256.0, 0.0, 90.0), part(128.0, 0.0, 37.0)],
}


def grad(kernel: str, width: int, *, rank: int = 1, **changes: Any) -> Row:
    """A backward kernel with tiles of 128 queries and keys, and 8 warps."""
    plan = planned(width, rank=rank, stages=2) | {"kernel": kernel}
    plan["case"] = plan["case"].replace("forward", kernel)
    parts = [one | {"tensor_cycles": width / 64 * one["tensor_cycles"]} for one in PARTS[kernel]]
    sums = (sum(one[name] for one in parts) for name in part(0.0, 0.0, 0.0))
    facts = {"thread_register_count": 218, "block_shared_bytes": 81_920, "loop_parts": parts}
    return row(plan, **cycles(*sums) | facts | changes)


@pytest.mark.parametrize("width", [64, 128])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"block_warp_count": 4, "thread_register_count": 128, "block_shared_bytes": 65_536},
        {"loop_overlaps": True},
        cycles(512.0, 272.0, 600.0),
    ],
)
def test_the_bound_is_the_one_that_the_audit_computes(width: int, changes: dict[str, Any]) -> None:
    warps = changes.get("block_warp_count", 8)
    found = forward(width, plan=planned(width, warps=warps), **changes)
    one = step(found)
    assert one is not None
    bound = most_busy(found, warps, found["sm_block_count"])
    assert (one.busy_ratio, one.limit) == (pytest.approx(bound[0]), bound[1])
    assert found["tensor_busy_most_ratio"] == pytest.approx(one.busy_ratio)


def test_a_tile_of_scores_is_queries_by_keys_in_fp32() -> None:
    found = forward(128)
    of = tiles(found)
    assert of is not None
    assert (of.q.size_bytes, of.k.size_bytes) == (32 << 10, 32 << 10)
    assert (of.scores.size_bytes, of.output.size_bytes) == (64 << 10, 64 << 10)
    assert buffers(found, of) == 2
    narrow = forward(64)
    of = tiles(narrow)
    assert of is not None
    # what is left of shared memory is the queries' tile
    assert buffers(narrow, of) == 3
    left = narrow["block_shared_bytes"] - 3 * (of.k.size_bytes + of.v.size_bytes)
    assert left == of.q.size_bytes


def test_there_are_no_more_buffers_than_shared_memory_has_room_for() -> None:
    found = forward(128, block_shared_bytes=100 << 10)
    of = tiles(found)
    assert of is not None
    assert buffers(found, of) == 1
    assert buffers(found | {"block_shared_bytes": None}, of) == 0


def test_narrow_heads_are_limited_by_exponentials_and_wide_ones_by_turns() -> None:
    narrow, wide = step(forward(64)), step(forward(128))
    assert narrow is not None
    assert wide is not None
    assert (narrow.slowest_unit, wide.slowest_unit) == ("exponentials", "tensor")
    assert (narrow.limit, wide.limit) == ("turns", "turns")
    assert with_another_block(narrow).limit == "exponentials"
    assert with_another_block(wide).busy_ratio == 1


def test_consumers_overlap_within_one_block() -> None:
    found = in_gluon(128)
    one = step(found)
    assert one is not None
    assert one.is_specialized
    assert (one.block_teams, one.team_warps, one.blocks) == (2, 1, 1)
    assert one.busy_ratio == found["tensor_busy_most_ratio"] == 1
    assert one.period == 2 * 1024
    assert not is_specialized(forward(128))


@pytest.mark.parametrize(
    ("gpu", "changes", "why"),
    [
        ("8.0", {}, "its matrix products are HMMA"),
        ("10.0", {}, "its matrix products are UTCHMMA"),
        ("9.0", {}, "audit again"),
        ("9.0", {"instructions": None}, "was not read"),
        ("9.0", {"block_shared_bytes": 300 << 10}, "no block of it fits an SM"),
    ],
)
def test_a_row_without_cycles_says_why(gpu: str, changes: dict[str, Any], why: str) -> None:
    found = row(plan(gpu), **changes)
    assert step(found) is None
    assert why in why_no_step(found)


def test_a_kernel_that_failed_has_its_reason() -> None:
    found = row(plan("9.0"), Status.ERROR, "CompilationError: a bug")
    assert step(found) is None
    assert why_no_step(found) == "it was not compiled (CompilationError: a bug)"


@pytest.mark.parametrize("value", [None, 0, -1, True, "8", 1 << 40, float("nan"), float("inf")])
@pytest.mark.parametrize(
    "name", ["block_warp_count", "sm_block_count", "loop_tensor_cycles", "block_shared_bytes"]
)
def test_no_value_of_a_field_is_an_error(name: str, value: Any) -> None:
    found = forward(64) | {name: value}
    of = tiles(found)
    assert of is not None
    assert buffers(found, of) in (0, 3)
    one = step(found)
    assert one is None or 0 < one.busy_ratio <= 1


def test_of_each_width_the_first_that_fits_is_chosen() -> None:
    second = forward(128, plan=planned(128, rank=2, stages=3))
    first = forward(128, block_shared_bytes=300 << 10)
    assert widths([first, second, forward(64)]) == {64: forward(64), 128: second}
    assert widths([row(plan("9.0", "grad_q"))]) == {}
