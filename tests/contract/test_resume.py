"""A run that is interrupted, killed in the middle of a line, and resumed: no row is lost, none is
doubled, and what was on disk stays as it was.

One run goes through all of it: Ctrl-C in its second problem, then again SIGKILL there and a torn
last line, then it is resumed to its end, and once more after that.
"""

import os
import signal
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import wait_for
from tests.contract.conftest import (
    descendants,
    last_rows,
    lives,
    only_run,
    rows,
    run_attnbench,
    started,
    wait_until_gone,
)

SCENARIO = """\
name: stopped
question: What is left of it?
backends: [naive, waits, sdpa]
device: cpu
grid: {batch: 1, seq_len: [64, 128], d_model: 64, heads: 2}
plan: {like: quick, processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.05}
"""
TORN = b'{"schema":1,"kind":"latency","case":"naive-b1-n1'


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A command that has ended, and what it left: the lines of rows.jsonl, and those that live of
    the processes that it had.
    """

    code: int
    said: str
    lines: list[bytes]
    left: list[psutil.Process]


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    folder: Path
    interrupted: Stage
    killed: Stage
    resumed: subprocess.CompletedProcess[str]
    resumed_lines: list[bytes]
    again: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    place = tmp_path_factory.mktemp("stopped")
    (place / "stopped.yaml").write_text(SCENARIO)
    (place / "hold").touch()
    how: dict[str, Any] = {"cwd": place, "env": {"WAITS_IN": str(place)}, "backends": True}

    def stopped(number: signal.Signals, *words: object) -> Stage:
        (place / "held").unlink(missing_ok=True)
        (place / "pids").unlink(missing_ok=True)
        process = started("run", *words, **how)
        wait_for(lambda: (place / "held").exists() and (place / "pids").exists())
        there = descendants(process.pid)
        there += [psutil.Process(int(pid)) for pid in (place / "pids").read_text().split()]
        assert any(map(lives, there))
        os.kill(process.pid, number)
        said = process.communicate(timeout=240)[1]
        wait_until_gone([one for one in there if one.pid != process.pid])
        lines = (only_run(place / "runs") / "rows.jsonl").read_bytes().splitlines(keepends=True)
        return Stage(code=process.returncode, said=said, lines=lines, left=there)

    interrupted = stopped(signal.SIGINT, "stopped.yaml", "--runs", "runs")
    run = only_run(place / "runs")
    killed = stopped(signal.SIGKILL, "--resume", run)
    with (run / "rows.jsonl").open("ab") as file:
        file.write(TORN)
    (place / "hold").unlink()
    resumed = run_attnbench("run", "--resume", run, **how)
    resumed_lines = (run / "rows.jsonl").read_bytes().splitlines(keepends=True)
    again = run_attnbench("run", "--resume", run, **how)
    return Story(
        folder=run,
        interrupted=interrupted,
        killed=killed,
        resumed=resumed,
        resumed_lines=resumed_lines,
        again=again,
    )


def test_ctrl_c_is_exit_code_130_and_the_cases_without_a_result_are_interrupted(
    story: Story,
) -> None:
    assert story.interrupted.code == 130, story.interrupted.said
    assert "Traceback" not in story.interrupted.said
    assert f"--resume {story.folder.name}" in story.interrupted.said.replace("runs/", "")
    first = rows(story.folder)[: len(story.interrupted.lines)]
    assert Counter(row["status"] for row in first) == {"ok": 3, "interrupted": 3}
    for row in first:
        assert (row["seq_len"] == 128) == (row["status"] == "interrupted")
        assert bool(row["reason"]) == (row["status"] == "interrupted")
        assert (row["block_ms"] is None) == (row["status"] == "interrupted")


@pytest.mark.parametrize("stage", ["interrupted", "killed"])
def test_no_process_outlives_a_run_that_is_stopped(story: Story, stage: str) -> None:
    there = getattr(story, stage).left
    assert len(there) > 1
    assert not any(map(lives, there))


def test_a_killed_run_keeps_every_whole_line_and_adds_none(story: Story) -> None:
    assert story.killed.code == -signal.SIGKILL
    assert story.killed.lines == story.interrupted.lines


def test_resuming_adds_exactly_what_is_missing_and_changes_no_byte(story: Story) -> None:
    assert story.resumed.returncode == 0, story.resumed.stderr
    assert Path(story.resumed.stdout.strip()).name == story.folder.name
    assert story.resumed_lines[: len(story.killed.lines)] == story.killed.lines
    counted = last_rows(story.folder)
    assert len(counted) == 6
    assert {row["status"] for row in counted.values()} == {"ok"}
    for row in counted.values():
        assert row["attempt"] == (2 if row["seq_len"] == 128 else 1)
        assert row["block_ms"]
    added = rows(story.folder)[len(story.killed.lines) :]
    assert sorted(row["case"] for row in added) == sorted(
        case for case, row in counted.items() if row["seq_len"] == 128
    )


def test_a_torn_last_line_is_kept_apart(story: Story) -> None:
    assert story.resumed_lines[-1].endswith(b"\n")
    kept = [path.read_bytes() for path in (story.folder / "quarantine").iterdir()]
    assert kept == [TORN]


def test_a_finished_run_that_is_resumed_measures_nothing(story: Story) -> None:
    assert story.again.returncode == 0
    lines = (story.folder / "rows.jsonl").read_bytes().splitlines(keepends=True)
    assert lines == story.resumed_lines
