"""Several scenarios on the command line: a run each, one page, one exit code."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

PLAN = "{processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.1}"
Run = Callable[..., subprocess.CompletedProcess[str]]


def scenario(folder: Path, name: str, backends: str = "sdpa", device: str = "cpu") -> None:
    (folder / f"{name}.yaml").write_text(
        f"name: {name}\nquestion: What is {name}?\nbackends: [{backends}]\ndevice: {device}\n"
        f"grid: {{batch: 1, seq_len: [32, 64], d_model: 16, heads: 2}}\nplan: {PLAN}\n"
    )


@pytest.fixture
def evening(tmp_path: Path) -> str:
    scenario(tmp_path, "one")
    scenario(tmp_path, "two", "fused, naive")
    scenario(tmp_path, "three", device="cuda")
    text = "- one.yaml\n- three.yaml\n- {scenario: two.yaml, skip: naive, only: n64}\n"
    (tmp_path / "evening.yaml").write_text(text)
    return "evening.yaml"


@pytest.mark.long
def test_a_list_of_scenarios_from_its_file_to_its_page(
    attnbench: Run, tmp_path: Path, evening: str
) -> None:
    done = attnbench("run", evening)
    first, second = done.stdout.splitlines()
    assert done.returncode == 4, "three needs a GPU"
    assert "three: no cuda device" in done.stderr
    assert done.stderr.rstrip().endswith(f"the page: attnbench show {first} {second} --open")
    planned = json.loads((tmp_path / second / "run.json").read_text())["cases"]
    assert [one["case"] for one in planned] == ["fused-b1-n64-d16-h2-fp32-forward-core"]
    rows = [(tmp_path / run / "rows.jsonl").read_bytes() for run in (first, second)]

    lines = (tmp_path / second / "rows.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / second / "rows.jsonl").write_text("".join(lines[:-1]))
    again = attnbench("run", evening)
    assert again.stdout.splitlines() == [first, second]
    assert again.returncode == 4
    assert again.stderr.count("skipped: already finished") == 1
    assert (tmp_path / first / "rows.jsonl").read_bytes() == rows[0]
    assert (tmp_path / second / "rows.jsonl").read_bytes().count(b"\n") == 1

    shown = attnbench("show", first, second).stdout
    assert shown.index("What is one?") < shown.index("What is two?")
    page = attnbench("show", first, second, "-o", "both.html", check=True).stdout.strip()
    text = (tmp_path / page).read_text()
    assert text.count("<html") == 1
    assert "What is one?" in text
    assert "What is two?" in text
