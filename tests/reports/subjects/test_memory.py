"""reports/subjects/memory.py: whether counts of a peak agree, its parts, who needs the least."""

from pathlib import Path
from typing import Any

from attnbench.reports.subjects import memory
from tests.made_runs import case, made, problem, row, run_of, write_run
from tests.reports.rendering import card_of, subject_of


def run(tmp_path: Path, **changes: Any) -> Path:
    cases = [
        case(backend, problem(n)) for n in (512, 1024) for backend in ("naive", "fused", "sdpa")
    ]
    rows = [row(planned) for planned in cases]
    rows[1] |= changes
    return write_run(tmp_path, cases, rows)


# ---- memory beside the peak of a call ------------------------------------------------------------


def test_a_mask_that_is_kept_is_no_finding(tmp_path: Path) -> None:
    mask = 1024 * 1024
    planned = case("fused", problem(1024, causal=True, causal_align="top_left"))
    changed = row(planned, workspace_bytes=mask, outside_bytes=0, peak_bytes=2 * mask)
    found = list(subject_of(memory, write_run(tmp_path / "a", [planned], [changed])).blocks)
    assert not any("Beside the peak" in str(block) for block in found)
    larger = changed | {"workspace_bytes": mask + 1}
    found = list(subject_of(memory, write_run(tmp_path / "b", [planned], [larger])).blocks)
    assert any("Beside the peak" in str(block) for block in found)


def test_why_a_peak_is_not_known_is_said(tmp_path: Path) -> None:
    reason = "below what can be seen (4 MiB)"
    missing = {"peak_bytes": reason, "outside_bytes": reason}
    unseen = {"workspace_bytes": 0, "outside_bytes": None, "output_bytes": 1 << 19}
    path = run(tmp_path, peak_bytes=None, peak_source=None, memory_missing=missing, **unseen)
    found = list(subject_of(memory, path).blocks)
    assert any(f"Not known for fused, the peak: {reason}." in str(block) for block in found)


# ---- the card ------------------------------------------------------------------------------------


def test_equal_bytes_share_the_first_place(tmp_path: Path) -> None:
    """fused needs 8 times the bytes of sdpa on the first shape, and as many on the second."""
    sizes = {("fused", 8): 800, ("sdpa", 8): 100, ("fused", 4): 50, ("sdpa", 4): 50}
    pairs = [
        made(backend, problem(1024 if heads == 8 else 512, heads), 1.0, peak_bytes=size)
        for (backend, heads), size in sizes.items()
    ]
    card = card_of(memory, run_of(tmp_path, *pairs, name="backends"))
    strong = [[cell.text for cell in row if cell.strong] for row in card.picture.cells]
    assert sorted(map(len, strong)) == [1, 2]
    assert [text for (text,) in [one for one in strong if len(one) == 1]] == ["100 B"]
