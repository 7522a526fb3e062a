"""Walls as a user finds them: in workers under a small budget, as rows, through faults, signals and
resume.
"""

import json
import re
from pathlib import Path

import pytest

from tests.made_runs import read_rows

pytestmark = pytest.mark.long

SHAPE = ("--batch", "1", "--d-model", "64", "--heads", "2", "--device", "cpu")
ROOM = ("--memory-gib", "0.1", "--budget", "600")
FIND = (
    "name: mine\nquestion: How long?\nbackends: [fused, sdpa:cudnn, needs_package]\nfind_wall:"
    " true\nplan: {processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.1}\nlimits: {memory_gib:"
    " 0.1}\n"
)


def walls_of(run: str | Path) -> dict[str, dict]:
    """Last rows of walls by backend; every planned wall has one."""
    rows = read_rows(Path(run))
    found = {row["case"]: row for row in rows if row["kind"] == "wall"}
    assert list(found) == [
        wall["case"] for wall in json.loads((Path(run) / "run.json").read_text())["walls"]
    ]
    return {row["backend"]: row for row in found.values()}


def test_the_wall_is_an_interval_of_trials_beside_its_prediction(attnbench, tmp_path):
    done = attnbench("wall", "--backends", "fused", *SHAPE, *ROOM, check=True)
    (line,) = done.stdout.splitlines()
    row = walls_of(line)["fused"]
    assert row["case"] == "wall-fused-b1-d64-h2-fp32-forward-core"
    assert (row["status"], row["reason"], row["limited_by"]) == ("ok", "", "memory")
    assert row["kv_seq_len"] is None
    assert row["memory_bytes"] == int(0.1 * 2**30)
    low, high = row["seq_len_low"], row["seq_len_high"]
    fits, fails = (
        {probe["seq_len"] for probe in row["probes"] if probe["status"] == status}
        for status in ("ok", "oom")
    )
    # Beside other work trials may contradict each other: the interval ends at the nearest ones that
    # none contradicts, if there are any.
    assert low == max((n for n in fits if n < min(fails)), default=None)
    assert high == min((n for n in fails if n > max(fits)), default=None)
    if max(fits) < min(fails):
        assert 0 < high - low <= 0.02 * high
        assert low == pytest.approx(row["predicted_seq_len"], rel=0.1)
    assert all(
        "did not fit into the budget" in probe["reason"]
        for probe in row["probes"]
        if probe["status"] == "oom"
    )
    grouped = f"{low:,}".replace(",", "\u202f")
    assert f"fused\u00a0{grouped} tokens: found by calls" in done.stderr
    page = Path(attnbench("show", line, "--format", "html").stdout.strip()).read_text()
    assert re.search(rf"<td[^>]*>{grouped}<", page)
    assert attnbench("show", line, "--format", "csv").stdout.count("\n") == 1


def test_a_wall_that_cannot_be_found_is_a_row_with_its_reason_and_the_next_one_is_looked_for(
    attnbench,
):
    backends = "crashes,needs_package,refuses,runs_out_of_memory,raises"
    done = attnbench("wall", "--backends", backends, *SHAPE, "--causal", *ROOM)
    assert done.returncode == 1
    rows = walls_of(done.stdout.strip())
    assert {name: row["status"] for name, row in rows.items()} == {
        "crashes": "crashed",
        "needs_package": "unavailable",
        "refuses": "unsupported",
        "runs_out_of_memory": "oom",
        "raises": "error",
    }
    assert all(row["seq_len_low"] is row["limited_by"] is None for row in rows.values())
    assert rows["refuses"]["reason"] == "causal problems are not implemented"
    assert "Segmentation fault" in rows["crashes"]["log_tail"]
    assert "KeyError" in rows["raises"]["log_tail"]
    assert rows["runs_out_of_memory"]["reason"].startswith("nothing fits, not even N = 1: ")


def test_a_scenario_looks_for_walls_beside_its_cases_or_alone(attnbench, tmp_path):
    (tmp_path / "mine.yaml").write_text(
        FIND + "grid: {seq_len: [32, 64], d_model: 64, heads: [1, 2]}\n"
    )
    (tmp_path / "alone.yaml").write_text(FIND + "grid: {d_model: 64, heads: 2}\n")
    shown = attnbench("run", "mine.yaml", "--device", "cpu", "--dry-run").stdout
    assert "mine: 18 cases on cpu" in shown
    shown = attnbench("run", "alone.yaml", "--device", "cpu", "--dry-run").stdout
    (line,) = [line for line in shown.splitlines() if line.startswith("wall-fused")]
    assert 2000 < int(re.findall(r" ([\d\u202f]+)", line)[0].replace("\u202f", "")) < 3000
    only = ("--only", "wall-*-h2-", "--only", "fused-b1-n64-d64-h2", "--skip", "wall-fused")
    done = attnbench("run", "mine.yaml", "--device", "cpu", *only, check=True)
    assert "1 case and 2 walls" in done.stderr
    rows = walls_of(done.stdout.strip())
    assert {name: row["status"] for name, row in rows.items()} == {
        "sdpa:cudnn": "unsupported",
        "needs_package": "unavailable",
    }
    assert len((Path(done.stdout.strip()) / "rows.jsonl").read_text().splitlines()) == 3
    assert attnbench("show", done.stdout.strip(), "--format", "csv").stdout.count("\n") == 2


@pytest.mark.gpu
def test_on_a_gpu_the_wall_is_where_the_formula_says(attnbench):
    shape = "--batch 1 --d-model 512 --heads 8 --dtype bf16 --device cuda --memory-gib 1"
    done = attnbench("wall", "--backends", "naive,fused", *shape.split(), timeout=600)
    for row in walls_of(done.stdout.strip()).values():
        assert (row["status"], row["limited_by"]) == ("ok", "memory")
        assert row["seq_len_low"] == pytest.approx(row["predicted_seq_len"], rel=0.02)
