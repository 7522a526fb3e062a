"""Scenario files and their cases as pytest's collectors and items.

Stored samples become rounds of pytest-benchmark: its clock shows them, and nothing runs again.
"""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from importlib.util import find_spec
from math import isnan
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from ..cases.case import Case
from ..files.errors import BadInput, Refusal, StoreError
from ..files.printable import visible
from ..rows.readings import utilization_ratio
from ..rows.record import Record, Status
from ..rows.run_files import SCHEMA
from ..scenario import Scenario, load, read_change
from ..scenario.selection import planned
from . import DIST, NOT_UNDER_XDIST, ONE_WORKER, runs_key
from .runs import FileRun, Runs, Settings, settings_of, shortest, with_pytest_options

# Of NVIDIA's cards and its boards with a GPU on the chip, of AMD, of Windows' subsystem for Linux;
# without one of these torch finds no GPU.
GPU_FILES = ("/dev/nvidiactl", "/dev/nvmap", "/dev/kfd", "/dev/dxg")
TAIL_LINES = 40
NOTHING_TIMED = (
    "--attnbench-fail-slower: with --benchmark-disable, and under xdist, nothing is timed; leave"
    " the one out, or run with -n 0"
)
SAME_NAMES = (
    *("kernel", "stop", "input_bytes", "peak_bytes", "predicted_peak_bytes", "error_ratio"),
    "utilization_tier",
)
"""Fields of a row that pytest-benchmark's JSON has too."""


class ScenarioFile(pytest.File):
    """A scenario; its cases are its tests."""

    run: FileRun
    scenario: Scenario
    settings: Settings

    def collect(self) -> Iterator["ScenarioItem"]:
        if not self.config.pluginmanager.has_plugin("pytest-benchmark"):
            found = "loaded; leave out -p no:benchmark"
            if find_spec("pytest_benchmark") is None:
                found = "installed: pip install 'attnbench[pytest]'"
            raise self.CollectError(
                f"{self.path}: scenarios need the plugin pytest-benchmark, which is not {found}"
            )
        self.settings = settings_of(self.config)
        stash = self.config.stash
        if runs_key not in stash:
            stash[runs_key] = Runs(self.config, self.settings)
        try:
            self.scenario = load(shortest(self.path), [*map(read_change, self.settings.changes)])
            self.run = stash[runs_key].new(self.scenario)
        except BadInput as error:
            raise self.CollectError(with_pytest_options(error)) from None
        device = auto_device() if self.scenario.device == "auto" else self.scenario.device
        units = planned(self.scenario, device)
        if note := self.skipped_parts(len(units.walls)):
            stash[runs_key].notes.append(note)
        for case in units.cases:
            name = f"{self.scenario.name}[{shape(case)}-{case.backend}]"
            item = ScenarioItem.from_parent(self, name=name, callobj=measure_case, case=case)
            item.mark(device)
            yield item

    def skipped_parts(self, walls: int) -> str:
        """What only `attnbench run` does: walls and studies have no samples to replay."""
        parts = {"walls": walls, "studies": len(self.scenario.studies)}
        found = " and ".join(f"{what} ({count})" for what, count in parts.items() if count)
        source = self.scenario.source
        return f"{source}: {found} are left out here; attnbench run measures them" if found else ""

    def selected(self) -> list[str]:
        """The cases of this session that -k, -m and the like leave."""
        items = [item for item in self.session.items if isinstance(item, ScenarioItem)]
        return [
            item.case.id
            for item in items
            if item.parent is self and item.get_closest_marker("skip") is None
        ]


def measure_case(request: pytest.FixtureRequest, benchmark: Any) -> None:
    """The test function of a case: it asks for the fixture `benchmark`."""
    request.node.measure(benchmark)


class ScenarioItem(pytest.Function):
    """A case. A Function, because only functions may ask for fixtures.

    `moved_s`: its share of what was measured for several tests, less what it measured for others.
    """

    def __init__(self, *, case: Case, **rest: Any) -> None:
        super().__init__(**rest)
        self.case = case
        self.clock = ReplayClock()
        self.moved_s = 0.0

    @property
    def file(self) -> ScenarioFile:
        assert isinstance(self.parent, ScenarioFile)
        return self.parent

    def mark(self, device: str) -> None:
        if device == "cuda":
            self.add_marker(pytest.mark.gpu)
        self.add_marker(pytest.mark.backend(name=self.case.backend))
        self.add_marker(pytest.mark.dtype(name=self.case.problem.dtype))
        self.add_marker(pytest.mark.benchmark(timer=self.clock.read))
        # A case without samples, such as one that ran out of memory, has nothing to replay.
        self.add_marker(pytest.mark.filterwarnings("ignore:Benchmark fixture was not used"))

    def reportinfo(self) -> tuple[os.PathLike[str], int | None, str]:
        return self.path, 0, self.name  # the file's first line; a Function would name our own code

    @property
    def stays_together(self) -> bool:
        """All cases of its file run in this process: one run of attnbench measures them."""
        told = getattr(self.config, "workerinput", None)
        return told is None or told["workercount"] == 1 or told.get(DIST) in ONE_WORKER

    def setup(self) -> None:
        if not self.stays_together:
            pytest.fail(NOT_UNDER_XDIST, pytrace=False)
        super().setup()
        if self.config.getoption("setuponly", False):
            return
        run = self.file.run
        if self.case.id in run.records:
            return
        begun = monotonic()
        self.config.stash[runs_key].finish_others(run)
        self.moved_s = begun - monotonic()
        timed = not self.funcargs["benchmark"].disabled  # type: ignore[attr-defined]
        if self.file.settings.margins and not timed:
            pytest.fail(NOTHING_TIMED, pytrace=False)
        try:
            run.open(self.case.id, self.file.selected(), timed=timed)
        except Refusal as refusal:
            raise pytest.fail.Exception(with_pytest_options(refusal), pytrace=False) from None

    def measure(self, benchmark: Any) -> None:
        """Measure the case, or look it up if it has been measured; then replay its samples."""
        run, begun = self.file.run, monotonic()
        try:
            record = run.record(self.case.id)
            self.moved_s = run.shares_s[self.case.id] - (monotonic() - begun)
        except Refusal as refusal:
            if isinstance(refusal, StoreError):
                rows = "\n".join(map(json.dumps, refusal.unsaved))
                self.add_report_section("call", "rows that are not on disk", rows)
            raise pytest.fail.Exception(with_pytest_options(refusal), pytrace=False) from None
        assert run.path is not None
        status = str(record.status)
        self.user_properties += [("case", record.id), ("status", status), ("run", run.path.name)]
        self.raise_outcome(record)
        samples = samples_ms(record)
        if samples and not benchmark.disabled:
            benchmark.group = f"{self.file.scenario.name} {shape(self.case)}"
            benchmark.param = f"{shape(self.case)}-{self.case.backend}"
            benchmark.params = parameters(self.case)
            benchmark.extra_info.update(extra_info(record, run.path.name))
            self.clock.replay(benchmark, samples)

    def raise_outcome(self, record: Record) -> None:
        """Skip, xfail or fail a case that is not ok."""
        if record.status is Status.OK:
            return
        text = with_pytest_options(f"{record.status}: {record.reason}")
        if record.status in (Status.UNSUPPORTED, Status.UNAVAILABLE):
            pytest.skip(text)
        if record.status in self.file.settings.expected:
            pytest.xfail(text)
        if record["log_tail"]:
            tail = "\n".join(record["log_tail"].splitlines()[-TAIL_LINES:])
            tail = visible(tail, lines=True)
            self.add_report_section("call", "end of the worker's log", tail)
        pytest.fail(text, pytrace=False)


@cache
def auto_device() -> str:
    """What `device: auto` will mean, before there is a worker to ask.

    Torch answers in a process of its own: its import takes seconds, and a process that has asked
    for GPUs cannot fork users of them.
    """
    if not any(Path(file).exists() for file in GPU_FILES):
        return "cpu"
    from ..process.command import SAFE_PATH, run_command
    from ..process.worker_process import child_environment

    code = (
        "from attnbench.harness.devices.environment import pick_device;"
        " print(pick_device('auto')[0].type)"
    )
    command = [sys.executable, *SAFE_PATH, "-c", code]
    done = run_command(command, env=child_environment())
    return "cuda" if done.stdout.strip() == "cuda" else "cpu"


# ---- replaying -----------------------------------------------------------------------------------


class ReplayClock:
    """A clock for pytest-benchmark, and the function to time: a round lasts as long as a sample."""

    def __init__(self) -> None:
        self._now_s = 0.0
        self._left: Iterator[float] = iter(())

    def read(self) -> float:
        """A round begins at 0, so that subtracting its begin from its end loses nothing."""
        return self._now_s

    def replay(self, benchmark: Any, samples_ms: list[float]) -> None:
        """By `pedantic`, which takes the rounds that there are.

        The other mode would first measure how fast this clock ticks.
        """
        self._left = (sample_ms / 1e3 for sample_ms in samples_ms)
        rounds = len(samples_ms)
        benchmark.pedantic(self._play, setup=self._rewind, rounds=rounds, iterations=1)

    def _rewind(self) -> None:
        self._now_s = 0.0

    def _play(self) -> None:
        self._now_s = next(self._left, 0.0)  # --benchmark-cprofile asks for one more round


def samples_ms(record: Record) -> list[float]:
    """All calls, in order."""
    return [call for process in record["block_ms"] or () for block in process for call in block]


def shape(case: Case) -> str:
    """The case's id without its backend."""
    return case.id.removeprefix(f"{case.backend}-")


def parameters(case: Case) -> dict[str, Any]:
    """For --benchmark-group-by=param:heads and the like."""
    return {"backend": case.backend, **asdict(case.problem)}


def extra_info(record: Record, run: str) -> dict[str, Any]:
    """What a row says beside its samples, under its own names; missing is null."""
    from ..stats.intervals import latency_interval  # numpy, which collecting does not need

    latency = latency_interval(record["block_ms"]) if record["block_ms"] else None
    bounds = (None, None, None) if latency is None else (latency.value, latency.low, latency.high)
    names = ("latency_ms", "latency_low_ms", "latency_high_ms")
    numbers = {
        name: None if value is None or isnan(value) else value
        for name, value in zip(names, bounds, strict=True)
    }
    tier = record["utilization_tier"]
    # as attnbench.load takes them
    windows = [window for window in record["windows"] or () if window["way"] == "eager"]
    return {
        "run": run,
        "schema": SCHEMA,
        "case": record.id,
        "device": record["device"],
        **numbers,
        **{name: record[name] for name in SAME_NAMES},
        "utilization_ratio": utilization_ratio(windows, tier) if windows and tier else None,
    }
