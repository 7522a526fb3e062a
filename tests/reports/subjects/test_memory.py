"""reports/subjects/memory.py: whether counts of a peak agree, its parts, who needs the least."""

from pathlib import Path
from typing import Any

from attnbench.reports.subjects import memory
from tests.made_runs import case, problem, row, write_run
from tests.reports.rendering import subject_of, tables_of


def run(tmp_path: Path, **changes: Any) -> Path:
    cases = [
        case(backend, problem(n)) for n in (512, 1024) for backend in ("naive", "fused", "sdpa")
    ]
    rows = [row(planned) for planned in cases]
    rows[1] |= changes
    return write_run(tmp_path, cases, rows)


# ---- memory beside the peak of a call ------------------------------------------------------------


def test_a_mask_that_is_kept_is_shown_as_such_and_is_no_finding(tmp_path: Path) -> None:
    mask = 1024 * 1024
    planned = case("fused", problem(1024, causal=True, causal_align="top_left"))
    changed = row(planned, workspace_bytes=mask, outside_bytes=0, peak_bytes=2 * mask)
    found = list(subject_of(memory, write_run(tmp_path / "a", [planned], [changed])).blocks)
    table = tables_of(found)[-1]
    assert "1 MiB (no more than a mask)" in table.rows[0]
    assert not any("Beside the peak" in str(block) for block in found)
    larger = changed | {"workspace_bytes": mask + 1}
    found = list(subject_of(memory, write_run(tmp_path / "b", [planned], [larger])).blocks)
    assert any("Beside the peak" in str(block) for block in found)


def test_bytes_below_what_can_be_seen_are_never_printed_as_0(tmp_path: Path) -> None:
    reason = "below what can be seen (4 MiB)"
    missing = {"peak_bytes": reason, "outside_bytes": reason}
    unseen = {"workspace_bytes": 0, "outside_bytes": None, "output_bytes": 1 << 19}
    path = run(tmp_path, peak_bytes=None, peak_source=None, memory_missing=missing, **unseen)
    found = list(subject_of(memory, path).blocks)
    assert any(f"Not known for fused, the peak: {reason}." in str(block) for block in found)
    table = tables_of(found)[-1]
    (changed,) = (one for one in table.rows if "0 B" in one)  # nothing is kept, exactly
    assert changed[1] == "fused"
    assert changed.count("below what can be seen") == 2


# ---- the card ------------------------------------------------------------------------------------
