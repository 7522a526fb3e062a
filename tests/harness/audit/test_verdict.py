"""What an audit comes to, and how its table shows it, on rows with made-up numbers."""

from typing import Any

import pytest
from rich.table import Table

from attnbench.harness.cli.audit_table import tables
from attnbench.harness.audit.verdict import sentence, spills, verdicts
from attnbench.harness.record import Status
from tests.reports.fake_kernels import plan, row

TOO_BIG = 300 << 10


def said(rows: list[dict[str, Any]]) -> tuple[str, bool]:
    (verdict,) = verdicts(rows)
    return sentence(verdict), verdict.is_good


def lines(rows: list[dict[str, Any]]) -> list[list[str]]:
    (drawn,) = tables(rows)
    return cells_of(drawn)


def cells_of(drawn: Table) -> list[list[str]]:
    return [
        list(map(str, cells))
        for cells in zip(*(column.cells for column in drawn.columns), strict=True)
    ]


def test_where_all_is_well_it_says_so_with_numbers() -> None:
    assert said(
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
    text, is_good = said([row(plan("9.0")), row(plan("9.0", rank=2), **changes)])
    assert (
        is_good,
        "FAILED, 1 of 2 kernels spill (kernel-sm90-forward-bf16-d_k128-2-causal)" in text,
    ) == (False, True)


def test_nothing_read_is_no_verdict_of_health() -> None:
    unread = row(
        plan("9.0"), thread_stack_bytes=None, spill_store_bytes=None, spill_load_bytes=None
    )
    assert spills(unread) is None
    text, is_good = said([unread])
    assert (is_good, "1 of 1 kernel could not be read" in text) == (False, True)


def test_one_that_does_not_fit_is_passed_over_and_a_list_without_one_that_fits_fails() -> None:
    rows = [row(plan("9.0"), block_shared_bytes=TOO_BIG), row(plan("9.0", rank=2))]
    text, is_good = said(rows)
    assert (is_good, text.endswith("1 do not fit an SM and are passed over when tuned")) == (
        True,
        True,
    )
    text, is_good = said([rows[0], row(plan("9.0", "grad_q"))])
    assert (
        is_good,
        "1 of 2 kernels have no configuration that fits an SM (kernel-sm90-forward" in text,
    ) == (False, True)


def test_a_row_without_a_result_fails_and_is_named() -> None:
    text, is_good = said(
        [
            row(plan("9.0")),
            row(plan("9.0", rank=2), Status.TIMEOUT, "still running after its 600 s"),
        ]
    )
    assert (is_good, "FAILED, 1 of 2 kernels did not compile (" in text) == (False, True)


def test_gpus_are_judged_apart() -> None:
    found = verdicts([row(plan("8.0"), thread_stack_bytes=8), row(plan("9.0")), row(plan("13.0"))])
    assert [(verdict.compute_capability, verdict.is_good) for verdict in found] == [
        ("8.0", False),
        ("9.0", True),
        ("13.0", True),
    ]
    assert sentence(found[2]) == "13.0: ok, 1 kernel, none spills"


def test_a_line_shows_the_worse_of_causal_and_not_and_whatever_fields_a_configuration_has() -> None:
    causal, full = plan("9.0", rank=2), plan("9.0", rank=2, causal=False)
    rows = [
        row(causal),
        row(full, spill_store_bytes=4, spill_load_bytes=8, thread_register_count=255),
    ]
    wanted = [
        "forward",
        "128",
        "64x64 w8 s2 descriptors",
        "255",
        "80 K",
        "4+8",
        "1x8 of 64",
        "12.5%",
        "regs",
        "256 HGMMA",
    ]
    assert lines(rows) == lines(rows[::-1]) == [wanted]


def test_what_does_not_fit_and_what_is_not_known_is_said() -> None:
    assert lines([row(plan("9.0"), block_shared_bytes=TOO_BIG)])[0][-4:-1] == [
        "0x8 of 64",
        "0%",
        "too big: shared",
    ]
    assert lines([row(plan("13.0"))])[0][-4:-1] == ["-", "-", "-"]
    assert lines([row(plan("9.0"), instructions=None)])[0][-1] == "-"
    assert lines([row(plan("9.0"), Status.CRASHED, "SIGSEGV")])[0][-2] == "crashed: SIGSEGV"


def test_tables_are_by_gpu_and_dtype_and_name_the_versions() -> None:
    drawn = list(tables([row(plan("8.0")), row(plan("9.0")), row(plan("9.0", dtype="fp16"))]))
    assert [table.title for table in drawn] == [
        "8.0 (Ampere: A100, A30), bf16; Triton 3.9.0, ptxas 13.4.59",
        "9.0 (Hopper: H100, H200, GH200), bf16; Triton 3.9.0, ptxas 13.4.59",
        "9.0 (Hopper: H100, H200, GH200), fp16; Triton 3.9.0, ptxas 13.4.59",
    ]
