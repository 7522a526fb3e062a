"""The verdict of an audit, on rows with made-up numbers."""

from typing import Any

import pytest

from attnbench.harness.audit.verdict import spills, verdicts
from attnbench.harness.cli.audit_table import sentence
from attnbench.harness.record import Status
from tests.reports.fake_kernels import plan, row

TOO_BIG = 300 << 10


def verdict_of(rows: list[dict[str, Any]]) -> tuple[str, bool]:
    (verdict,) = verdicts(rows)
    return sentence(verdict), verdict.is_good


def test_a_good_audit_has_its_numbers() -> None:
    assert verdict_of(
        [
            row(plan("9.0", rank=rank), thread_register_count=count)
            for rank, count in ((1, 205), (2, 64))
        ]
    ) == (
        "9.0 (Hopper: H100, H200, GH200): ok, 2 kernels, none spills; 8 to 16 of 64 warps per SM",
        True,
    )


@pytest.mark.parametrize(
    "changes", [{"thread_stack_bytes": 8}, {"spill_store_bytes": 4}, {"spill_load_bytes": 4}]
)
def test_any_spilled_byte_fails(changes: dict[str, int]) -> None:
    text, is_good = verdict_of([row(plan("9.0")), row(plan("9.0", rank=2), **changes)])
    assert (
        is_good,
        "FAILED, 1 of 2 kernels spill (kernel-sm90-forward-bf16-d_k128-2-causal)" in text,
    ) == (False, True)


def test_an_unread_cubin_is_not_good() -> None:
    unread = row(
        plan("9.0"), thread_stack_bytes=None, spill_store_bytes=None, spill_load_bytes=None
    )
    assert spills(unread) is None
    text, is_good = verdict_of([unread])
    assert (is_good, "1 of 1 kernel could not be read" in text) == (False, True)


def test_a_kernel_too_big_for_an_sm_is_skipped_and_a_list_without_a_fit_fails() -> None:
    rows = [row(plan("9.0"), block_shared_bytes=TOO_BIG), row(plan("9.0", rank=2))]
    text, is_good = verdict_of(rows)
    assert (is_good, text.endswith("1 too big for an SM, skipped when tuning")) == (
        True,
        True,
    )
    text, is_good = verdict_of([rows[0], row(plan("9.0", "grad_q"))])
    assert (
        is_good,
        "1 of 2 kernels have no configuration that fits an SM (kernel-sm90-forward" in text,
    ) == (False, True)


def test_a_kernel_that_did_not_compile_fails() -> None:
    text, is_good = verdict_of(
        [
            row(plan("9.0")),
            row(plan("9.0", rank=2), Status.TIMEOUT, "still running after its 600 s"),
        ]
    )
    assert (is_good, "FAILED, 1 of 2 kernels did not compile (" in text) == (False, True)


def test_each_compute_capability_has_a_verdict() -> None:
    found = verdicts([row(plan("8.0"), thread_stack_bytes=8), row(plan("9.0")), row(plan("13.0"))])
    assert [(verdict.compute_capability, verdict.is_good) for verdict in found] == [
        ("8.0", False),
        ("9.0", True),
        ("13.0", True),
    ]
    assert sentence(found[2]) == "13.0: ok, 1 kernel, none spills"
