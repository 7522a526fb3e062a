"""reports/subjects/memory.py: whether the counts of peak bytes agree, and the parts of a peak."""

from pathlib import Path
from typing import Any

from attnbench.reports.elements import Text
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


def test_runs_older_than_these_columns_are_still_read(tmp_path: Path) -> None:
    path = run(tmp_path)
    text = (path / "rows.jsonl").read_text()
    for field in (
        "output_bytes",
        "predicted_source",
        "meta_peak_bytes",
        "meta_reason",
        "work_exps",
        "minimal_bytes",
    ):
        text = text.replace(f'"{field}"', f'"unknown_{field}"')
    (path / "rows.jsonl").write_text(text)
    first, *rest = list(subject_of(memory, path).blocks)
    assert isinstance(first, Text)
    assert (
        first.text == "In all 6 cases the measured peak agrees with every other count: the"
        " backend's closed formula."
    )
    assert rest == []


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
