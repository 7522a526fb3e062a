"""docs/internals/reliability.md holds: its tests exist, and it shows every attack."""

import json
import os
import re
import signal
import sys
import time
from pathlib import Path
from random import Random

import pytest

from tests.conftest import ROOT, ran
from tests.faults import in_process
from tests.faults.outcome import Outcome
from tests.faults.rows import check_rows, whole_lines
from tests.faults.sweep import load, names, order
from tests.faults.trial import EXIT_CODES, Trial
from tests.made_runs import write_rows
from tests.search_path import searched

PAGE = (ROOT / "docs/internals/reliability.md").read_text(encoding="utf-8")
FAULTS, BAD_INPUTS = 24, 18


def numbered(title: str) -> dict[int, list[str]]:
    """The tests of each line of a table."""
    section = re.split(r"^## ", PAGE.split(f"\n## {title}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]
    lines = re.findall(r"^\| (\d+) \|.*\| ([^|]+) \|$", section, re.MULTILINE)
    return {int(number): re.findall(r"`([^`]+)`", tests) for number, tests in lines}


TESTS = {
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
}


@pytest.mark.parametrize(("title", "count"), [("Faults", FAULTS), ("Bad inputs", BAD_INPUTS)])
def test_every_line_names_tests_that_exist(title: str, count: int) -> None:
    found = numbered(title)
    assert list(found) == list(range(1, count + 1))
    for number, tests in found.items():
        assert tests, f"{title} {number} has no test"
        assert [one for one in tests if one not in TESTS] == []


def test_every_promise_names_tests_that_exist() -> None:
    section = PAGE.split("\n## Promises\n")[1].split("\n## ")[0]
    promises = {one.split("**")[0]: one for one in section.split("\n- **")[1:]}
    assert len(promises) > 5
    for name, text in promises.items():
        tests = re.findall(r"`(test_\w+)`", text)
        assert tests, f"{name} has no test"
        assert [one for one in tests if one not in TESTS] == []


NVML_STAMPS = {"busy.py"}  # the driver stamps its samples with the wall clock


def test_no_duration_is_taken_from_the_wall_clock() -> None:
    for folder in ("harness", "impls", "reports"):
        for path in (ROOT / folder).rglob("*.py"):
            found = re.findall(r"\btime\.time(?:_ns)?\(|datetime\.now\(\)|utcnow", path.read_text())
            assert not found or path.name in NVML_STAMPS, (
                f"{path}: {found}; durations are monotonic, stamps are now(UTC)"
            )


def test_the_page_shows_every_attack_and_that_it_was_survived() -> None:
    shown = re.findall(r"^\| ([^|]+) ((?:\| [\d ]+ ){7})\|$", PAGE, re.MULTILINE)
    numbers = {
        title: [int(n.replace(" ", "")) for n in cells.split("|")[1:]] for title, cells in shown
    }
    assert set(numbers) == {*(load(name).TITLE for name in names()), "all"}
    for title, (tried, survived, *failures) in numbers.items():
        assert tried == survived > 0, title
        assert not any(failures), title


def test_a_sweep_has_what_it_is_for() -> None:
    counts = {name: load(name).COUNT for name in names()}
    assert counts["parent_kills"] + counts["kills_at_steps"] >= 100
    assert counts["broken_folders"] >= 1500
    assert {0, 2, 4, 130} <= EXIT_CODES, "the documented ones"
    begun = {name for name, _ in order(names(), 1.0)[:300]}
    assert begun == set(names()), "a sweep that is cut short has some of each"
    short = order(names(), None)
    assert {name for name, _ in short} == set(names())


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path, 0, Random(0), tmp_path)


def run_with(folder: Path, *rows: dict[str, object]) -> Path:
    run = folder / "results" / "2-x"
    run.mkdir(parents=True)
    (run / "run.json").write_text(json.dumps({"cases": [{"case": "a"}, {"case": "b"}]}))
    write_rows(run, rows)
    return run


def row(case: str, attempt: int = 1, status: str = "ok") -> dict[str, object]:
    return {"case": case, "attempt": attempt, "status": status}


def test_rows_that_are_lost_or_doubled_are_counted(tmp_path: Path) -> None:
    good = Outcome()
    check_rows(run_with(tmp_path / "0", row("a", 1, "interrupted"), row("b"), row("a", 2)), good)
    assert good.survived
    missing, unfinished, twice, changed = (Outcome() for _ in range(4))
    check_rows(run_with(tmp_path / "1", row("a")), missing)
    check_rows(run_with(tmp_path / "2", row("a"), row("b", 1, "interrupted")), unfinished)
    check_rows(run_with(tmp_path / "3", row("a"), row("b"), row("b")), twice)
    run = run_with(tmp_path / "4", row("b"), row("a"))
    check_rows(run, changed, [b'{"case": "earlier"}\n', *whole_lines(run)])
    assert (missing.lost, unfinished.lost, twice.doubled, changed.lost) == (1, 1, 1, 1)
    assert not any(one.survived for one in (missing, unfinished, twice, changed))


@pytest.mark.long
def test_tracebacks_hangs_and_wrong_exit_codes_are_counted(trial: Trial) -> None:
    python = (sys.executable, "-c")
    trial.end(trial.start("1/0", program=python))
    assert trial.outcome.tracebacks == 1
    trial.end(trial.start("import os; os._exit(77)", program=python))
    assert "exit code 77" in trial.outcome.wrong[-1]
    trial.end(trial.start("import time; time.sleep(60)", program=python), limit_s=0.2)
    assert trial.outcome.hangs == 1


def endless() -> None:
    while True:
        pass


def test_a_command_hangs_by_its_work_and_not_by_the_work_of_others(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", sys.argv)
    limit = (signal.SIGPROF, signal.ITIMER_PROF, 0.05)
    monkeypatch.setattr(in_process, "LIMITS", (limit,))
    monkeypatch.setattr(in_process.app, "main", lambda: time.sleep(0.2))
    in_process.run(trial, ["waits"])
    assert trial.outcome.survived
    monkeypatch.setattr(in_process.app, "main", endless)
    in_process.run(trial, ["works"])
    assert trial.outcome.hangs == 1


@pytest.mark.long
def test_a_process_that_forgets_everything_is_found_and_ended() -> None:
    """In a process of its own, which adopts orphans."""
    code = (
        "import sys, subprocess, random, pathlib, tempfile\n"
        "from tests.faults.sweep import adopt_orphans\n"
        "from tests.faults.trial import Trial\n"
        "adopt_orphans()\n"
        "trial = Trial(pathlib.Path(tempfile.mkdtemp()), 0, random.Random(0), None)\n"
        "import tests.faults.trial as module; module.GONE_S = 0.2\n"
        "subprocess.run(['setsid', '-f', 'env', '-i', 'sleep', '600'], check=True)\n"
        "trial.none_left(); first = trial.outcome.left\n"
        "trial.none_left(); print(first, trial.outcome.left)\n"
    )
    done = ran(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": searched(ROOT, ROOT / ".package")},
        check=True,
    )
    assert done.stdout == "1 1\n"
