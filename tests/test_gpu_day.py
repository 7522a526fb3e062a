"""The program for a day with a GPU: its plan, its deadlines, going on, and its archives."""

import json
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.scenario import load, read_change
from attnbench.harness.scenario.selection import Selection, select
from tests.conftest import ROOT, environment, ran
from tests.gpu_day.commands import Ended
from tests.gpu_day.day import ARCHIVE_S, FAILED, FINISHED, UNFINISHED, Call, Place
from tests.gpu_day.steps import STEPS, Step

MACHINE = {"gpu": "a GPU", "capability": "90", "torch": "2.11.0", "packages": {}}


@dataclass
class Day:
    """A place whose commands take as long as `takes_s` says, by a clock turned by hand.

    `codes`: exit codes that are not 0. A command with "run" in it makes the folder of a run.
    """

    folder: Path
    takes_s: dict[str, float] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)
    now_s: float = 100.0
    started: list[tuple[str, float]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    dies_in: str = ""
    count: int = 0

    def execute(
        self, command: Sequence[str], log: Path, limit_s: float, _variables: Mapping[str, str]
    ) -> Ended:
        name = log.stem if "--resume" not in command else f"{log.stem} again"
        self.started.append((name, limit_s))
        if "show" in command:
            (Path(command[command.index("show") + 1]) / "report.html").write_text("a page")
        elif "run" in command and "--resume" not in command:
            self.make_run(f"run-{self.count}")
            self.count += 1
        if name == self.dies_in:
            raise KeyboardInterrupt
        spent_s = min(self.takes_s.get(name, 5.0), limit_s)
        self.now_s += spent_s
        cut_off = self.takes_s.get(name, 5.0) > limit_s
        log.write_text("what it printed")
        return Ended(130 if cut_off else self.codes.get(name, 0), spent_s, cut_off)

    def make_run(self, name: str) -> None:
        folder = self.folder / "gpu" / "runs" / name
        folder.mkdir(parents=True)
        (folder / "run.json").write_text("{}")
        (folder / "rows.jsonl").write_text("{}\n")
        os.utime(folder / "rows.jsonl", (1e9, 1e9))

    def call(self, every: Sequence[Step], *, minutes: float = 9.0, **changes: Any) -> Call:
        settings: dict[str, Any] = {"machine": MACHINE} | changes
        place = Place(
            python="python", device="cuda", memory_gib=72.0, jobs=4, root=self.folder / "gpu"
        )
        return Call(
            every=every,
            place=place,
            archive=self.folder / "out" / "a.tar.gz",
            deadline_s=self.now_s + 60 * minutes,
            environment={},
            clock=lambda: self.now_s,
            execute=self.execute,
            say=self.said.append,
            **settings,
        )

    def names(self) -> list[str]:
        """Of what was started since the last look."""
        found = [name for name, _ in self.started if name != "reports"]
        self.started.clear()
        return found

    def archived(self) -> set[str]:
        with tarfile.open(self.folder / "out" / "a.tar.gz") as tar:
            return set(tar.getnames())


@pytest.fixture
def day(tmp_path: Path) -> Day:
    return Day(tmp_path)


def step(name: str, most_s: float = 60.0, **fields: Any) -> Step:
    return Step(name=name, words=("{python}", name), most_s=most_s, **fields)


MEASURED = Step(name="measured", words=("attnbench", "run"), most_s=60.0, resumes=True)
THREE = (step("first"), MEASURED, step("last"))


# ---- the plan ------------------------------------------------------------------------------------


def test_the_plan_prints_the_seconds_of_each_step_and_fits_into_nine_minutes() -> None:
    done = called("--dry-run")
    timed = re.findall(r"^ +([0-9]+) s  (\S+) ", done.stdout, re.MULTILINE)
    *seconds, total_s = (int(number) for number, _ in timed)
    assert sum(seconds) == total_s <= 540
    names = [name for _, name in timed[1:-3]]
    runs = ["quickstart", "head-cost", "memory-wall", "kernel-sweep", "heads-of-64"]
    assert names == ["calibrate", *runs]
    assert "launch-each" in done.stdout.partition("with what is left:")[2]


def test_runs_measure_what_the_gpu_does_meanwhile_and_the_wall_takes_most_of_the_card(
    day: Day,
) -> None:
    words = {one.name: " ".join(day.call(STEPS).place.command(one)) for one in STEPS}
    for name in ("quickstart", "head-cost", "memory-wall"):
        assert "measure=[latency,memory,utilization,energy]" in words[name]
    assert "--memory-gib 72.0" in words["memory-wall"]
    on_gpu = {one.name: len(cases(one, one.gpu, "cuda")) for one in STEPS if "run" in one.words}
    assert on_gpu == {
        "quickstart": 36, "head-cost": 15, "memory-wall": 27, "kernel-sweep": 24, "heads-of-64": 12
    }  # fmt: skip


def cases(one: Step, more: tuple[str, ...], device: str) -> list[str]:
    """The ids of the cases of a run that a step starts."""
    words = (*one.words, *more)
    given = {flag: [b for a, b in pairwise(words) if a == flag] for flag in ("--set", "--only")}
    scenario = load(
        words[words.index("run") + 1], [*map(read_change, (*given["--set"], f"device={device}"))]
    )
    selected = select(scenario, device, Selection(only=tuple(given["--only"])))
    return [case.id for case in selected.cases]


def test_every_run_has_few_cases_in_a_rehearsal() -> None:
    for one in (one for one in STEPS if "run" in one.words):
        assert 1 <= len(cases(one, one.cpu, "cpu")) <= 6, one.name


def test_every_gpu_test_is_in_a_step() -> None:
    named = " ".join(word for one in STEPS for word in one.words)
    for path in (ROOT / "tests").rglob("test_*.py"):
        name = path.relative_to(ROOT).as_posix()
        if re.search(r"^(@pytest|pytestmark =.*)\.?mark\.gpu", path.read_text(), re.MULTILINE):
            assert name in named, f"{name}: in no step of tests/gpu_day/steps.py"
    for name in re.findall(r"tests/\S+\.py", named):
        assert "gpu" in (ROOT / name).read_text(), f"{name}: has no test for a GPU"


# ---- deadlines -----------------------------------------------------------------------------------


def test_a_call_ends_in_time_though_every_step_hangs(day: Day) -> None:
    hangs = tuple(step(f"step-{n}", 100.0) for n in range(20))
    day.takes_s = {one.name: 1e9 for one in hangs}
    begin_s = day.now_s
    assert day.call(hangs).run() == UNFINISHED
    assert day.now_s - begin_s <= 60 * 9.0 - ARCHIVE_S
    assert "gpu/day/state.json" in day.archived()


def test_what_gets_only_time_that_is_left_takes_none_from_others(day: Day) -> None:
    some = (step("first", 300.0), step("last", 0.0))
    day.takes_s = {"first": 1e9, "last": 1e9}
    assert day.call(some).run() == UNFINISHED
    assert [limit_s for _, limit_s in day.started] == [500.0]  # pages and archive take the rest
    day.started.clear()
    day.takes_s = {"first": 100.0}
    assert day.call(some).run() == FINISHED
    assert dict(day.started)["last"] == 400.0


# ---- a call after another ------------------------------------------------------------------------


def test_what_ended_is_not_repeated_and_a_run_that_was_cut_off_goes_on(day: Day) -> None:
    day.takes_s = {"measured": 1e9}
    assert day.call(THREE).run() == UNFINISHED
    assert day.names() == ["first", "measured", "last"]
    assert day.call(THREE).run() == FINISHED
    assert day.names() == ["measured again"]
    assert day.call(THREE).run() == FINISHED
    assert day.names() == []


def test_after_a_kill_in_a_step_its_run_goes_on(day: Day) -> None:
    day.dies_in = "measured"
    with pytest.raises(KeyboardInterrupt):
        day.call(THREE).run()
    assert "gpu/runs/run-0/rows.jsonl" in day.archived()
    day.dies_in = ""
    day.names()
    assert day.call(THREE).run() == FINISHED
    assert day.names() == ["measured again", "last"]


def test_on_another_machine_all_begins_anew_and_the_old_is_kept(day: Day) -> None:
    day.call(THREE).run()
    day.names()
    assert day.call(THREE, machine=MACHINE | {"gpu": "another GPU"}).run() == FINISHED
    assert len(day.names()) == 3
    assert (day.folder / "gpu" / "day-1" / "state.json").exists()


# ---- how it ends ---------------------------------------------------------------------------------


def test_after_a_failed_step_the_others_run_and_the_exit_code_says_so(day: Day) -> None:
    day.codes = {"first": 1}
    call = day.call(THREE)
    assert call.run() == FAILED
    assert day.names() == ["first", "measured", "last"]
    assert call.failed() == ["first"]
    assert day.call(THREE).run() == FAILED  # also if nothing is left to do
    assert day.names() == []


def test_the_archive_has_rows_pages_logs_and_what_stands_beside_runs(day: Day) -> None:
    runs = day.folder / "gpu" / "runs"
    day.make_run("of-another-part")
    (runs / "calibration.jsonl").write_text("{}\n")
    (runs / "latest").symlink_to("of-another-part")
    assert day.call(THREE).run() == FINISHED
    assert day.archived() == {
        *("gpu/day/state.json", "gpu/day/machine.json", "gpu/day/logs/first.log"),
        *("gpu/day/logs/measured.log", "gpu/day/logs/last.log", "gpu/day/logs/reports.log"),
        *(f"gpu/runs/run-0/{name}" for name in ("run.json", "rows.jsonl", "report.html")),
        "gpu/runs/calibration.jsonl",
    }
    assert [path.name for path in (day.folder / "out").iterdir()] == ["a.tar.gz"]


# ---- for real ------------------------------------------------------------------------------------


def called(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return ran(
        [sys.executable, "-m", "tests.gpu_day", *words], cwd=ROOT, env=environment(variables)
    )


@pytest.mark.nightly
def test_a_step_measures_small_on_a_cpu_and_leaves_an_archive(tmp_path: Path) -> None:
    words = ("--rehearse", "--out", str(tmp_path / "gpu"), "--minutes", "2.5")
    done = called(*words)
    assert done.returncode in (FINISHED, UNFINISHED), done.stdout + done.stderr
    archive = Path(done.stdout.splitlines()[-1])
    assert archive == tmp_path / "gpu" / "gpu.tar.gz"
    with tarfile.open(archive) as tar:
        assert "gpu/day/state.json" in tar.getnames()
    state = json.loads((tmp_path / "gpu" / "day" / "state.json").read_text())
    assert state["steps"]["calibrate"]["state"] in ("ended", "cut off")
