"""reports/subjects/masks.py: what a mask costs alone."""

from pathlib import Path

from attnbench.reports.subjects import masks
from tests.made_runs import made, problem, run_of
from tests.reports.rendering import subject_of


def test_the_mask_with_the_highest_peak_is_named_with_what_the_call_needs(tmp_path: Path) -> None:
    of = problem(4096, causal=True)
    costly = {"mask_build_ms": 120.0, "mask_build_peak_bytes": 160 << 20, "peak_bytes": 16 << 20}
    cheap = {"mask_build_ms": 3.0, "mask_build_peak_bytes": 1 << 20, "peak_bytes": 40 << 20}
    run = run_of(
        tmp_path,
        made("flex", of, 40.0, **costly),
        made("sdpa", of, 30.0, **cheap),
        made("naive", of, 9),
    )
    assert len(subject_of(masks, run).lines) == 1
    (_, table) = subject_of(masks, run).blocks
    assert [row[1].text for row in table.cells] == ["flex", "sdpa"]


def test_the_longest_compilation_is_named_with_and_without_a_mask(tmp_path: Path) -> None:
    masked = {"mask_build_ms": 3.0, "mask_build_peak_bytes": 1 << 20, "compile_ms": 4500.0}
    run = run_of(
        tmp_path,
        made("flex", problem(4096, causal=True), 40.0, **masked),
        made("compiled", problem(512), 2.0, compile_ms=9000.0),
        made("naive", problem(512), 9),
    )
    told = subject_of(masks, run)
    (_, table) = told.blocks
    found = {row[1].text: (row[3].text, row[-1].text) for row in table.cells}
    assert found == {"flex": ("3.00 ms", "4.50 s"), "compiled": ("", "9.00 s")}


def test_a_run_without_masks_has_no_line(tmp_path: Path) -> None:
    run = run_of(tmp_path, made("naive", problem(64), 9))
    assert subject_of(masks, run).lines == ()
