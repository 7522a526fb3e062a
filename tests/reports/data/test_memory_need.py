"""reports/data/memory_need.py: what is kept and what is clearly outside torch counts."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.data.memory_need import needed_bytes
from tests.made_runs import case, problem, row, write_run
from tests.reports.rendering import rows_of

MIB = 1 << 20


def of(peak: int | None, workspace: int | None, outside: int | None) -> dict[str, Any]:
    return {"peak_bytes": peak, "workspace_bytes": workspace, "outside_bytes": outside}


@pytest.mark.parametrize(
    ("row", "needed"),
    [
        (of(2 * MIB, 32 * MIB, MIB), 34 * MIB),
        (of(0, 0, 98 * MIB), 98 * MIB),
        (of(10 * MIB, 0, 4 * MIB), 10 * MIB),  # noise
        (of(1000 * MIB, 0, 12 * MIB), 1000 * MIB),  # 1 % of what is counted exactly is noise too
        (of(None, 3, 98 * MIB), None),
        ({"device": "cuda", **of(10 * MIB, 0, 400 * MIB)}, 10 * MIB),  # code of libraries
        ({"device": "cuda", **of(10 * MIB, 0, 600 * MIB)}, 610 * MIB),
    ],
)
def test_a_case_needs_its_peak_what_it_keeps_and_what_is_clearly_outside(
    row: dict[str, Any], needed: int | None
) -> None:
    assert needed_bytes(row) == needed


def test_no_size_in_a_file_is_too_large_to_be_added(tmp_path: Path) -> None:
    (planned,) = [case("fused", problem(512))]
    largest = (1 << 63) - 1
    huge = dict.fromkeys(("peak_bytes", "workspace_bytes", "outside_bytes"), largest)
    (found,) = rows_of(write_run(tmp_path, [planned], [row(planned, **huge)]))
    assert found["needed_bytes"] <= largest
