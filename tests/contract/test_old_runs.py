"""Runs that versions 0.1 and 0.2 left are read as before: every row, its status and its numbers."""

import json
import re
from pathlib import Path
from statistics import median

import pytest

from tests.contract.reading import RUNS, planned_and_found, python, shown

LOAD = """
import json, sys
import attnbench
for folder in sys.argv[1:]:
    frame = attnbench.load(folder)
    columns = ["case", "status", "reason", "latency_ms", "peak_bytes"]
    known = frame[columns].astype(object).where(frame[columns].notna(), None)
    print(json.dumps(known.to_dict("records"), default=float))  # names hold any character
"""
PAGES = """
import sys
from pathlib import Path
import attnbench
for number, folder in enumerate(sys.argv[1:]):
    print(attnbench.open_run(folder).report(f"{number}.html"))
"""
PLAIN = re.compile(r"[\w:.,=\[\]-]+", re.ASCII)
CASES = [run for run in RUNS if planned_and_found(run)[0]["cases"]]
MEASURED = [run for run in RUNS if planned_and_found(run)[1] and run.name != "kernels"]


@pytest.fixture(scope="module")
def frames() -> dict[Path, list[dict[str, object]]]:
    lines = python(LOAD, *CASES).splitlines()
    return dict(zip(CASES, map(json.loads, lines), strict=True))


def test_runs_of_both_versions_are_kept() -> None:
    versions = [planned_and_found(run)[0]["attnbench"] for run in RUNS]
    assert versions.count("0.1.0") >= 19
    assert versions.count("0.2.0") >= 13


@pytest.mark.parametrize("run", CASES, ids=lambda run: run.name)
def test_every_row_of_a_kept_run_is_read_with_its_numbers(
    run: Path, frames: dict[Path, list[dict[str, object]]]
) -> None:
    plan, rows = planned_and_found(run)
    wanted = {row["case"]: row for row in rows if row["kind"] == "latency"}
    found = {row["case"]: row for row in frames[run]}
    planned = {case["case"] for case in plan["cases"]}
    assert len(frames[run]) == len(found) == len(planned)
    assert set(found) == planned
    assert {case: row["status"] for case, row in found.items() if case in wanted} == {
        case: row["status"] for case, row in wanted.items()
    }
    for case, row in wanted.items():
        assert found[case]["reason"] == row["reason"]
        assert found[case]["peak_bytes"] == row["peak_bytes"]
        blocks_ms = row["block_ms"] if row["status"] == "ok" else None
        if blocks_ms is None:
            assert found[case]["latency_ms"] is None
            continue
        units_ms = [median(median(block) for block in process) for process in blocks_ms]
        if len(units_ms) == 1:
            units_ms = [median(block) for block in blocks_ms[0]]
        latency_ms = found[case]["latency_ms"]
        assert isinstance(latency_ms, float)
        assert min(units_ms) * (1 - 1e-6) <= latency_ms <= max(units_ms) * (1 + 1e-6)


def test_every_kept_run_has_its_page(tmp_path: Path) -> None:
    pages = python(PAGES, *MEASURED, cwd=tmp_path).splitlines()
    assert len(pages) == len(MEASURED)
    for run, page in zip(MEASURED, pages, strict=True):
        text = (tmp_path / Path(page).name).read_text()
        _, rows = planned_and_found(run)
        assert text.startswith("<!DOCTYPE html>")
        assert text.rstrip().endswith("</html>")
        named = {row["backend"] for row in rows if "backend" in row}
        backends = [name for name in named if PLAIN.fullmatch(name)]  # others are escaped
        assert all(backend in text for backend in backends), run.name


def test_a_kept_run_prints_its_answers_in_the_terminal() -> None:
    text = shown("show", next(run for run in RUNS if run.name == "cpu-20261121-quickstart"))
    assert "quickstart" in text
    assert all(backend in text for backend in ("naive", "fused", "sdpa"))
