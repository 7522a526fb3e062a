"""One run at a time uses a device; SIGTERM ends a run in order; a full disk loses no row; a folder
from somebody else does no harm.
"""

import json
import os
import signal
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import command_line, ran, wait_for
from tests.contract.conftest import (
    by_backend,
    descendants,
    only_run,
    rows,
    run_attnbench,
    started,
    users_environment,
    wait_until_gone,
)

SHAPE = ("--batch", 1, "--seq-len", 64, "--d-model", 32, "--heads", 2, "--device", "cpu", "--quiet")
PLAN = ("--set", "plan={like: quick, processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.05}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """A run that hangs and is ended by SIGTERM; a second one beside it, and a third that waits."""

    holder_pid: int
    ended: tuple[int, str]
    held: Path
    refused: Any
    waited: tuple[int, str]
    third: Path
    freed: str  # when, in UTC, as rows have it


@pytest.fixture(scope="module")
def meeting(tmp_path_factory: pytest.TempPathFactory) -> Meeting:
    place = tmp_path_factory.mktemp("meeting")
    run = ("run", "--backends", "hangs", *SHAPE, *PLAN, "--runs")
    env = {"HANGS_IN": str(place / "hangs")}
    holder = started(*run, "held", cwd=place, env=env, backends=True)
    wait_for((place / "hangs").exists)
    there = descendants(holder.pid)
    sdpa = ("run", "--backends", "sdpa", *SHAPE, *PLAN, "--runs")
    third = started(*sdpa, "third", "--wait", cwd=place)
    refused = run_attnbench(*sdpa, "second", cwd=place)  # which takes as long as the third to begin
    freed = datetime.now(UTC).isoformat(timespec="seconds")  # as run.json has it
    holder.send_signal(signal.SIGTERM)
    ended = (holder.wait(240), holder.communicate()[1])
    wait_until_gone(there)
    said = third.communicate(timeout=240)[1]
    assert not list((place / "second").glob("2*"))
    return Meeting(
        holder_pid=holder.pid,
        ended=ended,
        held=only_run(place / "held"),
        refused=refused,
        waited=(third.returncode, said),
        third=only_run(place / "third"),
        freed=freed,
    )


def test_a_second_run_on_a_device_is_refused_and_told_who_measures(meeting: Meeting) -> None:
    assert meeting.refused.returncode == 4
    assert str(meeting.holder_pid) in meeting.refused.stderr
    assert "--wait" in meeting.refused.stderr
    assert meeting.refused.stdout == ""


def test_a_run_that_waits_begins_when_the_device_is_free(meeting: Meeting) -> None:
    code, said = meeting.waited
    assert code == 0, said
    assert by_backend(meeting.third)["sdpa"]["status"] == "ok"
    began = json.loads((meeting.third / "run.json").read_text())["started_utc"]
    assert datetime.fromisoformat(began) >= datetime.fromisoformat(meeting.freed)


def test_sigterm_is_exit_code_143_and_an_interrupted_row(meeting: Meeting) -> None:
    code, said = meeting.ended
    assert code == 143
    assert "Traceback" not in said
    row = by_backend(meeting.held)["hangs"]
    assert row["status"] == "interrupted"
    assert "--resume" in row["reason"]


def test_a_full_disk_ends_the_run_and_the_row_that_found_no_place_is_on_stderr(
    tmp_path: Path,
) -> None:
    limited = (
        "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000));"
        " sys.argv = ['attnbench', *sys.argv[1:]]; runpy.run_module('attnbench',"
        " run_name='__main__')"
    )
    words = ("run", "--backends", "sdpa,naive", *SHAPE, "--set", "grid.seq_len=[32, 64, 96]")
    memory = ("--set", "measure=[memory]", "--runs", "runs")
    command = [sys.executable, "-c", limited, *words, *memory]
    done = ran(command, cwd=tmp_path, env=users_environment())
    assert done.returncode == 1
    assert "rows.jsonl" in done.stderr
    assert "Traceback" not in done.stderr
    saved = rows(only_run(tmp_path / "runs"))
    told = [json.loads(line) for line in done.stderr.splitlines() if line.startswith('{"schema"')]
    assert len(saved) > 1
    assert len(told) == 1
    assert told[0]["case"] not in {row["case"] for row in saved}
    assert {row["status"] for row in [*saved, *told]} == {"ok"}


def hostile(run: Path, kind: str, outside: Path) -> None:
    """Change a copy of a run as somebody else could have."""
    file = run / "rows.jsonl"
    if kind == "link":
        outside.write_bytes(file.read_bytes())
        file.unlink()
        file.symlink_to(outside)
    elif kind == "pipe":
        file.unlink()
        os.mkfifo(file)
    elif kind == "backend":
        meta = json.loads((run / "run.json").read_text())
        meta["scenario"]["backends"] = ["attend@planted"]
        for case in meta["cases"]:
            case["backend"] = "attend@planted"
            case["case"] = case["case"].replace("naive", "attend@planted")
        file.write_bytes(b"")
        (run / "run.json").write_text(json.dumps(meta))


@pytest.mark.parametrize("kind", ["link", "pipe", "backend"])
def test_a_hostile_folder_is_refused_in_one_line_and_nothing_outside_is_touched(
    kind: str, finished_run: Path, tmp_path: Path
) -> None:
    run = tmp_path / "runs" / finished_run.name
    run.mkdir(parents=True)
    for name in ("run.json", "rows.jsonl"):
        (run / name).write_bytes((finished_run / name).read_bytes())
    outside = tmp_path / "outside"
    hostile(run, kind, outside)
    (tmp_path / "planted.py").write_text("open('planted', 'w')\n")
    before = outside.read_bytes() if outside.exists() else b""
    done = ran(
        command_line("run", "--resume", run), cwd=tmp_path, env=users_environment(), timeout=120
    )
    assert done.returncode in (1, 2, 4), done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 3
    assert not (tmp_path / "planted").exists(), "a module that a folder names was imported"
    assert (outside.read_bytes() if outside.exists() else b"") == before
