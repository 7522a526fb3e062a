"""Scenario files and their cases as pytest's collectors and items.

Stored samples become rounds of pytest-benchmark: its clock shows them, and nothing runs again.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from math import isnan
from typing import Any

import pytest

from ..cases.case import Case
from ..devices.nvml import each_gpu
from ..devices.settings import CHOICE
from ..files.errors import BadInput, Refusal, Spelling, StoreError
from ..files.printable import visible
from ..rows.readings import utilization_ratio
from ..rows.record import Record, Status
from ..rows.run_files import SCHEMA
from ..scenario import Scenario
from ..scenario.selection import group_cases, walls_of
from .file_run import FileRun
from .options import requested

TAIL_LINES = 40
UNDER_XDIST = (
    "attnbench's cases are not measured under xdist, which disables pytest-benchmark and disturbs"
    " what is measured; run them with -n 0"
)
NOTHING_TIMED = (
    "--attnbench-fail-slower: with --benchmark-disable nothing is timed; leave one of them out"
)
NOT_IN_THE_RUN = "its file was measured without it; run it in a session of its own"
SAME_NAMES = (
    *("kernel", "stop", "input_bytes", "peak_bytes", "predicted_peak_bytes", "error_ratio"),
    "utilization_tier",
)
"""Fields of a row that pytest-benchmark's JSON has too."""
runs_key: pytest.StashKey[list[FileRun]] = pytest.StashKey()


class ScenarioFile(pytest.File):
    """A scenario; its cases are its tests."""

    run: FileRun

    def collect(self) -> Iterator["ScenarioItem"]:
        if not self.config.pluginmanager.has_plugin("pytest-benchmark"):
            found = "loaded; leave out -p no:benchmark"
            if find_spec("pytest_benchmark") is None:
                found = "installed: pip install 'attnbench[pytest]'"
            raise self.CollectError(
                f"{self.path}: scenarios need the plugin pytest-benchmark, which is not {found}"
            )
        try:
            self.run = FileRun(self.path, requested(self.config), self.config)
        except BadInput as error:
            raise self.CollectError(error.spelled(Spelling.PYTEST)) from None
        self.config.stash[runs_key].append(self.run)
        scenario = self.run.scenario
        device = auto_device() if scenario.device == "auto" else scenario.device
        self.run.notes += skipped_parts(scenario, device)
        for group in group_cases(scenario.backends, scenario.problem_groups(device)[0]):
            for case in group.cases:
                name = f"{scenario.name}[{shape(case)}-{case.backend}]"
                item = ScenarioItem.from_parent(self, name=name, callobj=measure_case, case=case)
                item.mark(device)
                yield item

    def selected(self) -> frozenset[str]:
        """The cases of this session that -k, -m and the like leave."""
        return frozenset(
            item.case.id
            for item in self.session.items
            if isinstance(item, ScenarioItem)
            and item.parent is self
            and item.get_closest_marker("skip") is None
        )


def auto_device() -> str:
    """What `device: auto` will mean, before there is a worker to ask."""
    hidden = os.environ.get(CHOICE, "0") in ("", "-1")
    return "cuda" if each_gpu().value and not hidden else "cpu"


def skipped_parts(scenario: Scenario, device: str) -> list[str]:
    """What only `attnbench run` does: walls and studies have no samples to replay."""
    parts = {"walls": len(walls_of(scenario, device)), "studies": len(scenario.studies)}
    found = " and ".join(f"{what} ({count})" for what, count in parts.items() if count)
    text = f"{scenario.source}: {found} are left out here; attnbench run measures them"
    return [text] if found else []


def measure_case(request: pytest.FixtureRequest, benchmark: Any) -> None:
    """The test function of a case: it asks for the fixture `benchmark`."""
    request.node.replay(benchmark)


class ScenarioItem(pytest.Function):
    """A case. A Function, because only functions may ask for fixtures.

    `moved_s`: what its time lacks of its own case, less what it measured for others.
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

    def setup(self) -> None:
        """Measures the file's cases, for its first test."""
        if hasattr(self.config, "workerinput"):
            pytest.fail(UNDER_XDIST, pytrace=False)
        super().setup()
        if self.config.getoption("setuponly", False):
            return
        run, timed = self.file.run, not self.funcargs["benchmark"].disabled  # type: ignore[attr-defined]
        if run.base is not None and not timed:
            pytest.fail(NOTHING_TIMED, pytrace=False)
        try:
            self.moved_s = -run.measure(self.file.selected(), timed=timed)
        except Refusal as refusal:
            if isinstance(refusal, StoreError):
                rows = "\n".join(map(json.dumps, refusal.unsaved))
                self.add_report_section("setup", "rows that are not on disk", rows)
            pytest.fail(refusal.spelled(Spelling.PYTEST), pytrace=False)

    def replay(self, benchmark: Any) -> None:
        """Tell how the case ended, and pass its samples on."""
        run = self.file.run
        if run.path is None or (record := run.records.get(self.case.id)) is None:
            pytest.fail(NOT_IN_THE_RUN, pytrace=False)
        self.moved_s = record["spent_s"] or 0.0
        self.user_properties += [
            ("case", record.id),
            ("status", str(record.status)),
            ("run", run.path.name),
        ]
        self.raise_outcome(record)
        samples = samples_ms(record)
        if samples and not benchmark.disabled:
            benchmark.group = f"{run.scenario.name} {shape(self.case)}"
            benchmark.param = f"{shape(self.case)}-{self.case.backend}"
            benchmark.params = {"backend": self.case.backend, **asdict(self.case.problem)}
            benchmark.extra_info.update(extra_info(record, run.path.name))
            self.clock.replay(benchmark, samples)

    def raise_outcome(self, record: Record) -> None:
        """Skip, xfail or fail a case that is not ok."""
        text = visible(f"{record.status}: {record.reason}", lines=True)
        if record.status is Status.OK:
            return
        if record.status in (Status.UNSUPPORTED, Status.UNAVAILABLE):
            pytest.skip(text)
        if record.status in self.file.run.request.expect:
            pytest.xfail(text)
        if record["log_tail"]:
            tail = "\n".join(record["log_tail"].splitlines()[-TAIL_LINES:])
            tail = visible(tail, lines=True)
            self.add_report_section("call", "end of the worker's log", tail)
        pytest.fail(text, pytrace=False)


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


def extra_info(record: Record, run: str) -> dict[str, Any]:
    """What a row says beside its samples, under its own names; missing is null."""
    from ..stats.intervals import latency_interval  # numpy, which collecting does not need

    latency = latency_interval(record["block_ms"])
    bounds = {
        "latency_ms": latency.value,
        "latency_low_ms": latency.low,
        "latency_high_ms": latency.high,
    }
    tier = record["utilization_tier"]
    # as attnbench.load takes them
    windows = [window for window in record["windows"] or () if window["way"] == "eager"]
    return {
        "run": run,
        "schema": SCHEMA,
        "case": record.id,
        "device": record["device"],
        **{name: None if isnan(value) else value for name, value in bounds.items()},
        **{name: record[name] for name in SAME_NAMES},
        "utilization_ratio": utilization_ratio(windows, tier) if windows and tier else None,
    }
