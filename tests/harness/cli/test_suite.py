"""Suites on the command line: one folder, one page, one exit code, and every command knows them."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from attnbench.harness.store.suites import runs_by_entry

PLAN = "{processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.1}"
Run = Callable[..., subprocess.CompletedProcess[str]]


def scenario(folder: Path, name: str, backends: str = "sdpa", seq_len: str = "32, 64") -> str:
    (folder / f"{name}.yaml").write_text(
        f"name: {name}\nquestion: What is {name}?\nbackends: [{backends}]\ndevice: cpu\n"
        f"grid: {{batch: 1, seq_len: [{seq_len}], d_model: 16, heads: 2}}\nplan: {PLAN}\n"
    )
    return f"{name}.yaml"


@pytest.fixture
def suite(tmp_path: Path) -> str:
    scenario(tmp_path, "one")
    scenario(tmp_path, "two", "fused, crashes", "32")
    text = "- one.yaml\n- {scenario: two.yaml, skip: naive}\n- {scenario: one.yaml, only: n64}\n"
    (tmp_path / "evening.yaml").write_text(text)
    return "evening.yaml"


@pytest.mark.long
def test_a_suite_from_its_file_to_its_page(attnbench: Run, tmp_path: Path, suite: str) -> None:
    done = attnbench("run", suite, "--only", "sdpa", "--only", "fused", check=True)
    (line,) = done.stdout.splitlines()
    path = tmp_path / line
    assert re.fullmatch(r"results/\d{8}T\d{6}Z-evening-[0-9a-f]{8}", line)
    first, second, third = runs_by_entry(path).values()
    cases = [
        [one["case"] for one in json.loads((run / "run.json").read_text())["cases"]]
        for run in (first, second, third)
    ]
    assert [len(some) for some in cases] == [2, 1, 1]
    assert cases[1][0].startswith("fused-")
    assert "-n64-" in cases[2][0]
    assert "2 of 3: two: What is two?" in done.stderr
    said = done.stderr[done.stderr.rindex("one: What is one?") :]
    assert said.index("one: What is one?") < said.index("two: What is two?")
    assert said.rstrip().endswith(f"next: attnbench report {line}")

    listed = attnbench("list", "runs").stdout
    assert re.search(rf"{path.name} +suite of 3: 3 finished", listed)
    assert re.search(rf"^  {first.name} +\S+ \S+ +cpu +2 ok +What is one", listed, re.MULTILINE)

    shown = attnbench("show").stdout
    assert shown.index("What is one?") < shown.index("What is two?")
    page = attnbench("show", "--format", "html")
    assert page.stdout.strip() == str(path / "report.html")
    text = (path / "report.html").read_text()
    assert text.count("<html") == 1
    assert "What is one?" in text
    assert "What is two?" in text
    exported = attnbench("show", line, "--format", "csv").stdout
    assert len(exported.splitlines()) == 1 + 4

    for refused in (["compare", "latest", "latest"], ["compare", "--save", "main"]):
        answer = attnbench(*refused)
        assert answer.returncode == 2
        assert "a suite of 3 runs; wanted one of them: latest/" in answer.stderr
    assert attnbench("compare", "latest/two", "--save", "main").returncode == 0
    assert attnbench("compare", "main", "latest/two").returncode == 0


@pytest.mark.long
def test_what_is_wrong_with_any_entry_is_said_before_anything_runs(
    attnbench: Run, tmp_path: Path, suite: str
) -> None:
    (tmp_path / suite).write_text("- one.yaml\n- {scenario: two.yaml, pln: quick}\n")
    (tmp_path / "one.yaml").write_text("name: one\nquestion: q\nbackends: sdpa\ngrid: {head: 2}\n")
    mistakes = (
        "evening.yaml:2:24: [1].pln: not a field of a suite's entry; did you mean [1].plan?",
        "one.yaml:4:8: grid.head: not a field of a scenario; did you mean grid.heads?",
    )
    for dry in ((), ("--dry-run",)):
        done = attnbench("run", suite, "one.yaml", *dry)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "".join(f"error: {one}\n" for one in mistakes)
    assert not (tmp_path / "results").exists()
