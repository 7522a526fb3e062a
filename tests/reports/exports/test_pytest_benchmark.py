"""reports/exports/pytest_benchmark.py: pytest-benchmark reads it, with its own statistics."""

import json
import re
import sys
from pathlib import Path

import pytest

from attnbench.reports.data.load import load
from attnbench.reports.exports import NotExportable, export
from tests.conftest import ran
from tests.made_runs import fake_run, quickstart, retold


def renamed(run: Path, name: str) -> Path:
    """A run of a scenario of this name."""
    meta = json.loads((run / "run.json").read_text())
    meta["scenario"]["name"] = name
    (run / "run.json").write_text(json.dumps(meta))
    return run


@pytest.mark.long
def test_its_command_line_compares_two_exported_runs(tmp_path: Path) -> None:
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for seed, file in enumerate(files, start=1):
        run = renamed(fake_run(tmp_path / "runs", seed, seed), "pairs")
        file.write_text(str(export(run, "pytest-benchmark").content))
    # The command is a console script; -m would not find it in a package without __main__.
    code = "from pytest_benchmark.cli import main; main()"
    command = [sys.executable, "-c", code, "compare", *files, "--columns=median,rounds"]
    done = ran(command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Failed to load" not in done.stdout + done.stderr
    assert done.stdout.count("benchmark 'pairs: ") == 2  # a group per problem
    for name in "ab":
        lines = re.findall(rf"^\w+-b1-n\d+-\S+ \(\S*/{name}\) ", done.stdout, re.MULTILINE)
        assert len(lines) == 6, done.stdout


def test_cases_without_a_latency_are_listed_beside_the_benchmarks_and_noted(tmp_path: Path) -> None:
    run = quickstart(tmp_path)
    done = export(run, "pytest-benchmark")
    document = json.loads(done.content)
    frame = load(run)
    untimed = frame[frame["latency_ms"].isna()]
    assert len(document["benchmarks"]) + len(document["attnbench"]["left_out"]) == len(frame)
    assert {one["fullname"].split("::")[1] for one in document["attnbench"]["left_out"]} == set(
        untimed["case"]
    )
    assert all(one["reason"] for one in document["attnbench"]["left_out"])
    assert f"{len(untimed)} cases without a latency left out" in done.notes[0]


def test_runs_that_would_share_names_or_come_from_two_machines_are_refused(tmp_path: Path) -> None:
    one, other = quickstart(tmp_path / "a"), quickstart(tmp_path / "b")
    with pytest.raises(NotExportable, match="two runs of the scenario quickstart"):
        export([one, other], "pytest-benchmark")
    another = retold(renamed(other, "another"), torch="3.0")
    with pytest.raises(NotExportable, match="different machines or versions"):
        export([one, another], "pytest-benchmark")
