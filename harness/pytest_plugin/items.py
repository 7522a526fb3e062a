"""Scenario files and their cases as pytest's collectors and items.

Stored samples become rounds of pytest-benchmark: its clock shows them, and nothing runs again.
"""

import json
import os
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest

from ..cases.case import Case
from ..devices.host import CHOICE
from ..devices.nvml import each_gpu
from ..files.errors import BadInput, Refusal, Spelling
from ..files.printable import visible
from ..rows.record import Status
from ..rows.run_files import SCHEMA
from ..scenario.selection import select
from .options import requested
from .runs import FileRun, runs_key

TAIL_LINES = 40
NO_BENCHMARK = "needs the plugin pytest-benchmark: pip install 'attnbench[pytest]'"
NOT_TIMED = (
    "nothing is timed, because xdist or --benchmark-disable switches pytest-benchmark off; run it"
    " with -n 0 and without --benchmark-disable"
)
OF_ROWS = (
    *("run", "case", "device", "kernel", "latency_ms", "latency_low_ms", "latency_high_ms", "stop"),
    *("input_bytes", "peak_bytes", "predicted_peak_bytes", "error_ratio"),
    *("utilization_tier", "utilization_ratio"),
)
"""What pytest-benchmark's JSON has of a row beside its samples."""


class ScenarioFile(pytest.File):
    """A scenario; its cases are its tests."""

    def collect(self) -> Iterator["ScenarioItem"]:
        if not self.config.pluginmanager.has_plugin("pytest-benchmark"):
            raise self.CollectError(f"{self.path}: {NO_BENCHMARK}")
        try:
            run = FileRun(self.path, requested(self.config), self.config)
        except BadInput as error:
            raise self.CollectError(error.spelled(Spelling.PYTEST)) from None
        self.config.stash.setdefault(runs_key, []).append(run)
        scenario = run.entry.scenario
        device = auto_device() if scenario.device == "auto" else scenario.device
        units = select(scenario, device, run.entry.selection)
        if units.walls or units.studies:
            found = f"walls ({len(units.walls)}) and studies ({len(units.studies)}) are left out"
            run.said.append(f"note: {scenario.source}: {found} here; attnbench run measures them")
        for case in units.cases:
            name = f"{scenario.name}[{shape(case)}-{case.backend}]"
            item = ScenarioItem.from_parent(self, name=name, callobj=case_test, case=case, run=run)
            if device == "cuda":
                item.add_marker(pytest.mark.gpu)
            yield item


def auto_device() -> str:
    """What `device: auto` will mean, before there is a worker to ask."""
    hidden = os.environ.get(CHOICE, "0") in ("", "-1")
    return "cuda" if each_gpu().value and not hidden else "cpu"


class ScenarioItem(pytest.Function):
    """A case. A Function, because only functions may ask for fixtures.

    `clock`: shows pytest-benchmark begin and end of each round, from 0, so that nothing is lost by
    subtracting.
    """

    def __init__(self, *, case: Case, run: FileRun, **rest: Any) -> None:
        super().__init__(**rest)
        self.case, self.run = case, run
        self.clock: Iterator[float] = iter(())
        self.add_marker(pytest.mark.backend(name=case.backend))
        self.add_marker(pytest.mark.dtype(name=case.problem.dtype))
        self.add_marker(pytest.mark.benchmark(timer=lambda: next(self.clock)))
        # A case without samples, such as one that ran out of memory, has nothing to replay.
        self.add_marker(pytest.mark.filterwarnings("ignore:Benchmark fixture was not used"))

    def reportinfo(self) -> tuple[os.PathLike[str], int | None, str]:
        return self.path, 0, self.name  # the file's first line; a Function would name our own code

    def setup(self) -> None:
        """Measure the file's cases that -k, -m and the like leave, for its first test."""
        super().setup()
        if self.config.getoption("setuponly", False):
            return
        benchmark: Any = self.funcargs["benchmark"]
        untimed = benchmark.disabled and "latency" in self.run.entry.scenario.measure
        if untimed or hasattr(self.config, "workerinput"):
            pytest.fail(NOT_TIMED, pytrace=False)
        ours = [one for one in self.session.items if isinstance(one, ScenarioItem)]
        ours = [one for one in ours if one.run is self.run and not one.get_closest_marker("skip")]
        try:
            self.run.measure(frozenset(one.case.id for one in ours))
        except Refusal as refusal:
            not_on_disk = map(json.dumps, getattr(refusal, "unsaved", ()))
            text = "\n".join([refusal.spelled(Spelling.PYTEST), *not_on_disk])
            pytest.fail(text, pytrace=False)


def case_test(request: pytest.FixtureRequest, benchmark: Any) -> None:
    """The test function of a case: it tells how the case ended, and passes its samples on."""
    item: ScenarioItem = request.node
    run, case, row = item.run, item.case, item.run.rows.get(item.case.id)
    if row is None:
        pytest.fail("its file was measured without it; run it alone", pytrace=False)
    item.user_properties += {name: row[name] for name in ("case", "status", "run")}.items()
    status, text = row["status"], visible(f"{row['status']}: {row['reason']}", lines=True)
    if status in (Status.UNSUPPORTED, Status.UNAVAILABLE):
        raise pytest.skip.Exception(text, _use_item_location=True)  # the scenario's file
    if {status, status.removeprefix("predicted_")} & {*run.request.expect}:
        pytest.xfail(text)
    if status != Status.OK:
        if tail := "\n".join((row["log_tail"] or "").splitlines()[-TAIL_LINES:]):
            item.add_report_section("call", "end of the worker's log", visible(tail, lines=True))
        pytest.fail(text, pytrace=False)
    samples = [*chain.from_iterable(chain.from_iterable(row["block_ms"] or ()))]
    if samples and not benchmark.disabled:
        benchmark.group = f"{run.entry.scenario.name} {shape(case)}"
        benchmark.param = f"{shape(case)}-{case.backend}"
        benchmark.params = case.fields()
        benchmark.extra_info |= {"schema": SCHEMA} | {name: row.get(name) for name in OF_ROWS}
        item.clock = chain.from_iterable((0.0, call_ms / 1e3) for call_ms in samples)
        # its other mode would first measure how fast this clock ticks
        benchmark.pedantic(bool, rounds=len(samples))


def shape(case: Case) -> str:
    """The case's id without its backend."""
    return case.id.removeprefix(f"{case.backend}-")
