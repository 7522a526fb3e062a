"""The verdict of an audit, on rows with made-up numbers."""

from typing import Any

import pytest

from attnbench.harness.audit.verdict import verdicts
from tests.reports.fake_kernels import plan, row


def failure(rows: list[dict[str, Any]]) -> str:
    (verdict,) = verdicts(rows)
    assert not verdict.is_good
    return verdict.sentence


def success(rows: list[dict[str, Any]]) -> str:
    (verdict,) = verdicts(rows)
    assert verdict.is_good
    return verdict.sentence


def test_a_good_audit_has_its_numbers() -> None:
    counts = ((1, 205), (2, 64))
    rows = [row(plan("9.0", rank=rank), thread_register_count=n) for rank, n in counts]
    assert success(rows) == (
        "9.0 (Hopper: H100, H200, GH200): ok, 2 kernels, none spills in a loop;"
        " 8 to 16 of 64 warps per SM"
    )


@pytest.mark.parametrize("name", ["thread_stack_bytes", "spill_store_bytes", "spill_load_bytes"])
def test_any_spilled_byte_fails(name: str) -> None:
    text = failure([row(plan("9.0")), row(plan("9.0", rank=2), **{name: 4})])
    assert "FAILED, 1 of 2 kernels spill (kernel-sm90-forward-bf16-d_k128-2-causal)" in text


def test_what_is_spilled_outside_of_loops_is_no_failure() -> None:
    outside = {"thread_stack_bytes": 24, "spill_store_bytes": 24, "spill_load_bytes": 24}
    clean = {"loop_spill_store_bytes": 0, "loop_spill_load_bytes": 0}
    success([row(plan("9.0"), **outside, **clean)])
    failure([row(plan("9.0"), **outside, **clean | {"loop_spill_load_bytes": 4})])


@pytest.mark.parametrize(
    "found",
    [
        {"serialized": True},
        {"ptxas_notes": ["C7514: wgmma.mma_async instructions are serialized due to insufficient"]},
    ],
)
def test_products_that_run_one_at_a_time_fail(found: dict[str, Any]) -> None:
    other = {"ptxas_notes": ["C7519: something else"], "serialized": False}
    success([row(plan("9.0"), **other)])
    text = failure([row(plan("9.0"), **found)])
    assert "1 of 1 kernel run their matrix products one at a time (kernel-sm90-forward" in text


def test_a_kernel_too_big_for_an_sm_is_skipped_and_a_list_without_a_fit_fails() -> None:
    too_big = row(plan("9.0"), block_shared_bytes=300 << 10)
    text = success([too_big, row(plan("9.0", rank=2))])
    assert text.endswith("1 too big for an SM, skipped when tuning")
    text = failure([too_big, row(plan("9.0", "grad_q"))])
    assert "1 of 2 kernels have no configuration that fits an SM (kernel-sm90-forward" in text
