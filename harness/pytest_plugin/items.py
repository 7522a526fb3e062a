"""Scenario files and their cases as pytest sees them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ..cases import Case
from ..errors import BadInput, Refusal, StoreError
from ..record import Record, Status
from ..scenario import Scenario, load
from ..selection import group_cases
from .replay import Playback, extra_info, parameters, samples_ms, shape
from .runs import FileRun, Runs
from .session import NOT_UNDER_XDIST, runs_key
from .settings import Settings, in_words_of_pytest, settings_of

# Of NVIDIA's cards and of its boards with a GPU on the chip, of AMD, of Windows' subsystem for
# Linux; without one torch finds no GPU.
GPU_FILES = ("/dev/nvidiactl", "/dev/nvmap", "/dev/kfd", "/dev/dxg")
TAIL_LINES = 40


class ScenarioFile(pytest.File):
    """A scenario; its cases are its tests."""

    run: FileRun
    scenario: Scenario
    settings: Settings

    def collect(self) -> Iterator["ScenarioItem"]:
        if not self.config.pluginmanager.has_plugin("pytest-benchmark"):
            raise self.CollectError(
                f"{self.path}: scenarios need the plugin pytest-benchmark, which is not loaded;"
                " leave out -p no:benchmark"
            )
        self.settings = settings_of(self.config)
        try:
            self.scenario = load(shortest(self.path), self.settings.changes)
        except BadInput as error:
            raise self.CollectError(in_words_of_pytest(error)) from None
        stash = self.config.stash
        if runs_key not in stash:
            stash[runs_key] = Runs(self.config, self.settings)
        self.run = stash[runs_key].new(self.scenario)
        device = auto_device() if self.scenario.device == "auto" else self.scenario.device
        if note := self.left_out(device):
            stash[runs_key].notes.append(note)
        for group in group_cases(self.scenario.backends, self.scenario.problem_groups(device)[0]):
            for case in group.cases:
                name = f"{self.scenario.name}[{shape(case)}-{case.backend}]"
                item = ScenarioItem.from_parent(self, name=name, callobj=carried_out, case=case)
                item.mark(device)
                yield item

    def left_out(self, device: str) -> str:
        """What only `attnbench run` does: walls and studies have no samples to replay."""
        from ..selection import walls_of

        parts = {
            "walls": len(walls_of(self.scenario, device)),
            "studies": len(self.scenario.studies),
        }
        found = " and ".join(f"{what} ({count})" for what, count in parts.items() if count)
        return (
            found
            and f"{self.scenario.source}: {found} are left out here; attnbench run carries them out"
        )

    def chosen(self) -> list[str]:
        """The cases that are left after -k, -m and the like, in this session."""
        items = (
            item
            for item in self.session.items
            if isinstance(item, ScenarioItem) and item.parent is self
        )
        return [item.case.id for item in items if item.get_closest_marker("skip") is None]


def carried_out(request: pytest.FixtureRequest, benchmark: Any) -> None:
    """What a case is to pytest: a function that asks for the fixture `benchmark`."""
    request.node.carry_out(benchmark)


class ScenarioItem(pytest.Function):
    """A case. A Function, for only those may ask for fixtures."""

    def __init__(self, *, case: Case, **rest: Any) -> None:
        super().__init__(**rest)
        self.case = case
        self.playback = Playback()

    @property
    def file(self) -> ScenarioFile:
        assert isinstance(self.parent, ScenarioFile)
        return self.parent

    def mark(self, device: str) -> None:
        if device == "cuda":
            self.add_marker(pytest.mark.gpu)
        self.add_marker(pytest.mark.backend(name=self.case.backend))
        self.add_marker(pytest.mark.dtype(name=self.case.problem.dtype))
        self.add_marker(pytest.mark.benchmark(timer=self.playback.read))
        # A case without samples, as one that ran out of memory, has nothing to replay.
        self.add_marker(pytest.mark.filterwarnings("ignore:Benchmark fixture was not used"))

    def reportinfo(self) -> tuple[os.PathLike[str], int | None, str]:
        return self.path, 0, self.name  # the file's first line; a Function would name our own code

    def setup(self) -> None:
        if hasattr(self.config, "workerinput"):
            pytest.skip(NOT_UNDER_XDIST)
        super().setup()
        if self.config.getoption("setuponly", False):
            return
        run = self.file.run
        if self.case.id in run.kept.records:
            return
        self.config.stash[runs_key].give_way_to(run)
        try:
            timed = not self.funcargs["benchmark"].disabled  # type: ignore[attr-defined]
            run.open(self.case.id, self.file.chosen(), timed=timed)
        except Refusal as refusal:
            raise pytest.fail.Exception(in_words_of_pytest(refusal), pytrace=False) from None

    def carry_out(self, benchmark: Any) -> None:
        """Measure, or look up what was measured already; then tell it in pytest's words."""
        run = self.file.run
        try:
            record = run.record(self.case.id)
        except Refusal as refusal:
            if isinstance(refusal, StoreError):
                self.add_report_section(
                    "call", "rows that are not on disk", "\n".join(map(json.dumps, refusal.unsaved))
                )
            raise pytest.fail.Exception(in_words_of_pytest(refusal), pytrace=False) from None
        assert run.path is not None
        self.user_properties += [
            ("case", record.id),
            ("status", str(record.status)),
            ("run", run.path.name),
        ]
        self.judge(record)
        samples = samples_ms(record)
        if samples and not benchmark.disabled:
            benchmark.group = f"{self.file.scenario.name} {shape(self.case)}"
            benchmark.param, benchmark.params = (
                f"{shape(self.case)}-{self.case.backend}",
                parameters(self.case),
            )
            benchmark.extra_info.update(extra_info(record, run.path.name))
            self.playback.replay(benchmark, samples)

    def judge(self, record: Record) -> None:
        """Skips or fails where a case has no result."""
        if record.status is Status.OK:
            return
        text = in_words_of_pytest(f"{record.status}: {record.reason}")
        if record.status in (Status.UNSUPPORTED, Status.UNAVAILABLE):
            pytest.skip(text)
        if record.status in self.file.settings.expected:
            pytest.xfail(text)
        if record["log_tail"]:
            self.add_report_section(
                "call",
                "end of the worker's log",
                "\n".join(record["log_tail"].splitlines()[-TAIL_LINES:]),
            )
        pytest.fail(text, pytrace=False)


def shortest(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


@cache
def auto_device() -> str:
    """What `device: auto` will mean, before there is a worker to ask.

    Torch answers in a process of its own: its import takes seconds, and a process that has asked
    for GPUs can fork no users of them.
    """
    if not any(Path(file).exists() for file in GPU_FILES):
        return "cpu"
    from ..process.worker_process import child_environment

    code = (
        "from attnbench.harness.environment import pick_device; print(pick_device('auto')[0].type)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=child_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    return "cuda" if done.stdout.strip() == "cuda" else "cpu"
