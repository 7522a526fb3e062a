"""Scenario files as pytest's collectors, their cases as its items, and the runs of a session.

A file is a run, measured when its first test asks. Stored samples become rounds of
pytest-benchmark: its clock shows them, and nothing runs again.
"""

import json
import os
import shlex
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from ..cases.case import Case
from ..devices.host import CHOICE
from ..devices.nvml import each_gpu
from ..files.errors import BadInput, Refusal, Spelling, option
from ..files.printable import visible
from ..rows.names import find, number_of_last
from ..rows.record import Status
from ..rows.run_files import SCHEMA, read_meta
from ..run.listener import Begun
from ..scenario.selection import Selection, select
from ..terminal.progress import LiveProgress, counts, lines_console
from ..verbs.compare import NOTHING_DECIDED, CompareRequest, compared
from ..verbs.measuring import How, ended, started_job
from ..verbs.run import RunRequest, planned
from .options import PytestRequest, requested

EXIT_CODES = {"passed": 0, "failed": 1, "nothing decided": NOTHING_DECIDED}
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
MOST_SLOWER = 10  # cases with their numbers; the command that is named has all


class FileRun(LiveProgress):
    """All of a scenario file is measured when its first test asks.

    `base`: the stored run, or last:N, that it is compared with. `refusal`: why no case has a
    result. `rows`: by case, as `attnbench.load` has them. `said`: for the end of the session.
    """

    def __init__(self, file: Path, request: PytestRequest, config: pytest.Config) -> None:
        """Raises BadInput."""
        super().__init__(lines_console())
        self.out.quiet = config.getoption("capture") != "no"
        self.request, self.config = request, config
        self.asked = RunRequest(scenario=(Path(shortest(file)),), quiet=True, **request.of_run)
        ((self.entry,), _) = planned(self.asked)
        self.base = base_of(self.entry.scenario.name, request) if request.fail_slower else None
        self.path: Path | None = None
        self.refusal: Refusal | None = None
        self.rows: dict[str, Any] = {}
        self.said: list[str] = []

    def begin(self, run: Begun) -> None:
        self.path = run.path
        self.said += (f"note: {one}" for one in run.remarks)
        super().begin(run)

    def remark(self, text: str) -> None:
        self.said.append(f"note: {text}")
        super().remark(text)

    def measure(self, cases: frozenset[str]) -> None:
        """Measure the cases, unless it was done before. Raises Refusal."""
        if self.refusal is not None:
            raise self.refusal
        if self.path is not None:
            return
        # from where the tests of the project import
        folders = [str(Path(one).absolute()) for one in (str(self.config.rootpath), *sys.path)]
        imports = self.request.allow_import and tuple(dict.fromkeys(folders))
        call = ["pytest", *map(str, self.config.invocation_params.args)]
        given: Any = {"call": call, "allow_import": imports, "listener": self}
        how = How(request=self.asked, spelling=Spelling.PYTEST, **given)
        entry = replace(self.entry, selection=Selection(ids=cases))
        self.refusal = Refusal("its run ended early")
        # torch and other packages warn when they are imported; no case fails for that
        with warnings.catch_warnings(action="default"):
            from ...reports.data.load import rows_of
            from ...reports.data.run_meta import read_runs

            try:
                ended(how.measured(started_job(entry, self.asked)), how)
                self.refusal = None
            except Refusal as refusal:
                self.refusal = refusal
                raise
            finally:
                found: Any = rows_of(read_runs([self.path])) if self.path else ()
                self.rows = {row["case"]: row for row in found}

    def judge(self, base: str, path: Path) -> int:
        """The session's exit code; comparison and words are those of `attnbench compare --gate`."""
        try:
            with warnings.catch_warnings(action="default"):  # of packages that are imported here
                from ...reports.comparison.sentences import gate_text, verdict_text

                gate, root = f"latency: {self.request.fail_slower}", self.request.runs
                asked = CompareRequest(base=base, new=str(path), gate=gate, runs=root)
                result = compared(asked).gate_result
        except Refusal as refusal:
            self.said.append(f"not compared with {base}: {refusal.spelled(Spelling.PYTEST)}")
            return NOTHING_DECIDED
        assert result is not None
        slower = result.regressions[:MOST_SLOWER]
        self.said += [
            gate_text(result),
            *(f"{one.shown['case']}: {verdict_text(one)}" for one in slower),
            f"every case: attnbench compare {shlex.join([base, shortest(path)])}",
        ]
        return EXIT_CODES[result.outcome]


runs_key: pytest.StashKey[list[FileRun]] = pytest.StashKey()

# ---- files and cases -----------------------------------------------------------------------------


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


# ---- the end of a session ------------------------------------------------------------------------


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Compare the runs with those that they are to be compared with."""
    if session.exitstatus <= pytest.ExitCode.TESTS_FAILED:
        runs = session.config.stash.get(runs_key, [])
        codes = [run.judge(run.base, run.path) for run in runs if run.path and run.base]
        session.exitstatus = session.exitstatus or min(filter(None, codes), default=0)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    lines = []
    for run in config.stash.get(runs_key, []):
        if run.path:
            statuses = Counter(row["status"] for row in run.rows.values())
            whole = run.refusal is None and not statuses[Status.INTERRUPTED]
            verb, path = "show --open" if whole else "run --resume", shlex.quote(shortest(run.path))
            lines.append(f"{counts(statuses)}; next: attnbench {verb} {path}")
        lines += run.said
    if lines:
        terminalreporter.ensure_newline()
        terminalreporter.section("attnbench", sep="-")
        for line in lines:
            terminalreporter.write_line(visible(line))


@pytest.hookimpl(optionalhook=True)  # the hook exists only with pytest-benchmark
def pytest_benchmark_update_json(config: pytest.Config, output_json: dict[str, Any]) -> None:
    """Add where the numbers come from.

    Not to machine_info: pytest-benchmark compares that before anything ran, and would warn of a
    difference every time.
    """
    paths = [run.path for run in config.stash.get(runs_key, []) if run.path]
    runs = [{"run": path.name, **read_meta(path)["environment"]} for path in paths]
    output_json["attnbench"] = {"schema": SCHEMA, "runs": runs}


def base_of(scenario: str, request: PytestRequest) -> str:
    """The run of a scenario among the stored ones that the user names; or last:N, as it is named.
    Raises BadInput.
    """
    for name in request.against:
        if number_of_last(name):
            return name
        if read_meta(run := find(name, request.runs))["scenario"].get("name") == scenario:
            return shortest(run)
    names = ", ".join(request.against) or "nothing"
    raise BadInput(
        f"{option('fail_slower')}: {option('against')} names {names}; wanted a stored run of the"
        f" scenario {scenario}: measure it once without these options, name that run with"
        f" `attnbench compare latest --save main`, and add {option('against', 'main')}; or last:5"
    )


def shortest(path: Path) -> str:
    """From the current folder, as messages name it."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
