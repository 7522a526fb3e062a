"""The tables of an audit, on rows with made-up numbers."""

from typing import Any

from attnbench.harness.audit.table import tables
from attnbench.harness.rows.record import Status
from tests.reports.fake_kernels import plan, row

TOO_BIG = 300 << 10


def lines(rows: list[dict[str, Any]]) -> list[list[str]]:
    (table,) = tables(rows)
    return [list(line) for line in table.rows]


def test_a_line_shows_the_worse_of_causal_and_not_and_whatever_fields_a_configuration_has() -> None:
    causal, full = plan("9.0", rank=2), plan("9.0", rank=2, causal=False)
    rows = [
        row(causal),
        row(full, spill_store_bytes=4, spill_load_bytes=8, thread_register_count=255),
    ]
    expected = [
        "forward",
        "128",
        "64x64 w8 s2 descriptors",
        "255",
        "80 KiB",
        "4 + 8",
        "1 × 8 of 64",
        "12.5 %",
        "registers",
        "256 HGMMA",
        "",
    ]
    assert lines(rows) == lines(rows[::-1]) == [expected]


def test_kernels_that_do_not_fit_and_unknown_values_are_marked() -> None:
    assert lines([row(plan("9.0"), block_shared_bytes=TOO_BIG)])[0][-5:-2] == [
        "0 × 8 of 64",
        "0 %",
        "too big: shared memory",
    ]
    assert lines([row(plan("13.0"))])[0][-5:-2] == ["", "", ""]
    assert lines([row(plan("9.0"), instructions=None)])[0][-2] == ""
    assert lines([row(plan("9.0"), Status.CRASHED, "SIGSEGV")])[0][3] == "crashed: SIGSEGV"


def test_how_busy_the_tensor_cores_can_be_is_shown_unless_products_run_one_by_one() -> None:
    cycles = {"tensor": 1024.0, "exponential": 528.0, "issue": 557.0}
    busy = {f"loop_{name}_cycles": value for name, value in cycles.items()}
    busy |= {"loop_overlaps": False}
    assert lines([row(plan("9.0"), **busy)])[0][-1] == "64.8 %, turns"
    assert lines([row(plan("9.0"), **busy, serialized=True)])[0][-1] == "one by one"


def test_tables_are_by_gpu_and_dtype_and_name_the_versions() -> None:
    drawn = list(tables([row(plan("8.0")), row(plan("9.0")), row(plan("9.0", dtype="fp16"))]))
    assert [table.title for table in drawn] == [
        "8.0 (Ampere: A100, A30), bf16; Triton 3.9.0, ptxas 13.4.59",
        "9.0 (Hopper: H100, H200, GH200), bf16; Triton 3.9.0, ptxas 13.4.59",
        "9.0 (Hopper: H100, H200, GH200), fp16; Triton 3.9.0, ptxas 13.4.59",
    ]
