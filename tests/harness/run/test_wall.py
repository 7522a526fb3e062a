"""Walls that a scenario looks for beside its cases, and those that cannot be found.

Where one is found: tests/contract/test_memory_limit.py.
"""

import json
import re
from pathlib import Path

import pytest

from tests.harness.run.small_runs import run_in
from tests.made_runs import read_rows

pytestmark = pytest.mark.long

FIND = """
name: mine
question: How long?
backends: [fused, sdpa:cudnn, needs_package, refuses]
causal: true
find_wall: true
plan: {processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.1}
limits: {memory_gib: 0.1}
"""
MINE = FIND + "grid: {seq_len: [32, 64], d_model: 64, heads: [1, 2]}\n"


def walls_of(run: str | Path) -> dict[str, dict]:
    """Last rows of walls by backend; every planned wall has one."""
    rows = read_rows(Path(run))
    found = {row["case"]: row for row in rows if row["kind"] == "wall"}
    assert list(found) == [
        wall["case"] for wall in json.loads((Path(run) / "run.json").read_text())["walls"]
    ]
    return {row["backend"]: row for row in found.values()}


@pytest.fixture(scope="module")
def sought(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str, Path]:
    """The exit code of a scenario with one case and the walls of one problem, what was said, and
    the run's folder.
    """
    folder = tmp_path_factory.mktemp("walls")
    (folder / "mine.yaml").write_text(MINE)
    only = ("--only", "wall-*-h2-", "--only", "fused-b1-n64-d64-h2", "--skip", "wall-fused")
    done = run_in(folder, "mine.yaml", "--device", "cpu", *only)
    return done.returncode, done.stderr, folder / done.stdout.strip()


def test_a_wall_that_cannot_be_found_is_a_row_with_its_reason_and_the_next_one_is_looked_for(
    sought: tuple[int, str, Path],
) -> None:
    code, said, run = sought
    assert code == 0
    assert "1 case and 3 walls" in said
    rows = walls_of(run)
    assert {name: row["status"] for name, row in rows.items()} == {
        "sdpa:cudnn": "unsupported",
        "needs_package": "unavailable",
        "refuses": "unsupported",
    }
    assert all(row["seq_len_low"] is row["limited_by"] is None for row in rows.values())
    assert rows["refuses"]["reason"] == "causal problems are not implemented"


def test_a_scenario_looks_for_walls_beside_its_cases_or_alone(here, tmp_path):
    (tmp_path / "mine.yaml").write_text(MINE)
    (tmp_path / "alone.yaml").write_text(FIND + "grid: {d_model: 64, heads: 2}\n")
    shown = here("run", "mine.yaml", "--device", "cpu", "--dry-run").stdout
    assert "mine: 16 cases on cpu" in shown
    assert "mine: 8 walls on cpu" in shown
    shown = here("run", "alone.yaml", "--device", "cpu", "--dry-run").stdout
    (line,) = [line for line in shown.splitlines() if line.startswith("wall-fused")]
    assert 2000 < int(re.findall(r" ([\d\u202f]+)", line)[0].replace("\u202f", "")) < 3000


@pytest.mark.gpu
def test_on_a_gpu_the_wall_is_where_the_formula_says(attnbench):
    shape = "--batch 1 --d-model 512 --heads 8 --dtype bf16 --device cuda --memory-gib 1"
    done = attnbench("wall", "--backends", "naive,fused", *shape.split(), timeout=600)
    for row in walls_of(done.stdout.strip()).values():
        assert (row["status"], row["limited_by"]) == ("ok", "memory")
        assert row["seq_len_low"] == pytest.approx(row["predicted_seq_len"], rel=0.02)
