"""reports/subjects/masks.py: what a mask costs alone."""

from pathlib import Path

from attnbench.reports.subjects import masks, rows
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
    (line,) = subject_of(masks, run).lines
    assert line.startswith("Building the mask of flex took 120 ms in one reading and up to 160 MiB")


def test_the_longest_compilation_is_named_with_and_without_a_mask(tmp_path: Path) -> None:
    masked = {"mask_build_ms": 3.0, "mask_build_peak_bytes": 1 << 20, "compile_ms": 4500.0}
    run = run_of(
        tmp_path,
        made("flex", problem(4096, causal=True), 40.0, **masked),
        made("compiled", problem(512), 2.0, compile_ms=9000.0),
        made("naive", problem(512), 9),
    )
    _, line = subject_of(masks, run).lines
    assert line.startswith("Compiling compiled took 9.00 s before its first call")
    (table,) = (one for one in subject_of(rows, run).blocks if getattr(one, "tools", False))
    places = [table.columns.index(name) for name in ("backend", "its mask", "compiling")]
    found = [tuple(row[place] for place in places) for row in table.texts]
    assert found == [("flex", "3.00 ms", "4.50 s"), ("compiled", "", "9.00 s"), ("naive", "", "")]
