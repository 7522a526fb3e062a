"""reports/data/read.py: rows of audited kernels are read and checked, and are no cases."""

import re
from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.rows.record import Status
from attnbench.reports.data.load import load
from attnbench.reports.data.read import BadRun, read_run
from attnbench.reports.exports import export
from tests.reports.fake_kernels import plan, row, three_gpus, write_audit


def test_other_readers_take_a_run_of_kernels_for_one_without_cases(tmp_path: Path) -> None:
    run = three_gpus(tmp_path)
    assert load(run).empty
    assert export(run, "json-rows").content == "[]\n"
    assert export(run, "csv").content.count("\n") == 1
    assert len(read_run(run).kernels) == 18
    assert read_run(run).notes == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"config": None}, "config: found nothing"),
        ({"rank": "1"}, "rank: found '1'"),
        ({"config": {"block_q": [1]}}, "config.block_q: found [1]"),
        ({"instructions": {"HMMA": "many"}}, "instructions.HMMA: found 'many'"),
        ({"block_limits": {"warps": -1}}, "block_limits.warps: found -1"),
        ({"limited_by": [3]}, "limited_by[0]: found 3"),
        ({"loop_parts": [3]}, "loop_parts[0]: found 3"),
        ({"loop_parts": [{"tensor_cycles": -1}]}, "loop_parts[0].tensor_cycles: found -1"),
        ({"sm_block_count": -1}, "sm_block_count: found -1"),
        ({"status": "fine"}, "status: found 'fine'"),
    ],
)
def test_a_broken_row_is_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    plans = [plan("9.0")]
    with pytest.raises(BadRun, match=rf"rows\.jsonl:1: {re.escape(message)}"):
        read_run(write_audit(tmp_path, plans, [row(plans[0]) | changes]))


@pytest.mark.parametrize("planned", [3, [3], [{"case": "a"}]])
def test_a_broken_plan_is_named(tmp_path: Path, planned: Any) -> None:
    with pytest.raises(BadRun, match="kernels"):
        read_run(write_audit(tmp_path, planned, []))


def test_the_last_row_of_a_kernel_counts(tmp_path: Path) -> None:
    plans = [plan("9.0")]
    crashed, again = row(plans[0], Status.CRASHED, "SIGSEGV"), row(plans[0]) | {"attempt": 2}
    run = write_audit(tmp_path, plans, [crashed, again])
    assert [one["status"] for one in read_run(run).kernels] == ["ok"]
