"""What a session with scenarios tells pytest: times, the end's lines and exit code, and origins."""

import shlex
from collections.abc import Generator
from typing import Any

import pytest

from ..files.printable import visible
from ..rows.record import Status
from ..rows.run_files import SCHEMA, read_meta
from ..terminal.progress import counts
from .gate import FAILED, judged, shortest
from .items import ScenarioItem, runs_key

FACTS = (
    *("device", "device_name", "device_uuid", "driver", "cuda", "cpu", "threads", "torch"),
    "attnbench",
)
"""Of the environment, for readers of pytest-benchmark's JSON."""


class Session:
    """A plugin of pytest, registered with the first scenario file."""

    def __init__(self, config: pytest.Config) -> None:
        self.runs = config.stash[runs_key] = []
        self.judged: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if isinstance(item, ScenarioItem):
            report.duration = max(0.0, report.duration + item.moved_s)
            item.moved_s = 0.0
            if report.skipped and isinstance(report.longrepr, tuple):
                # The place of a skip is the scenario file, not our own code.
                report.longrepr = (str(item.path), 1, report.longrepr[2])
        return report

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Compare the runs with those that they are to be compared with."""
        if session.exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return
        codes = {0}
        for run in self.runs:
            if run.path is not None and run.base is not None:
                margins = run.request.fail_slower or {}
                code, lines = judged(run.base, run.path, run.request.runs, margins)
                codes.add(code)
                self.judged += lines
        session.exitstatus = session.exitstatus or (FAILED if FAILED in codes else max(codes))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        lines = []
        for run in self.runs:
            if run.path is not None:
                ended = run.refusal is None and not run.statuses[Status.INTERRUPTED]
                path = shlex.quote(shortest(run.path))
                verb = "report" if ended else "run --resume"
                lines.append(f"{counts(run.statuses)}; next: attnbench {verb} {path}")
            lines += [f"note: {note}" for note in run.notes]
        if lines := [*lines, *self.judged]:
            terminalreporter.ensure_newline()
            terminalreporter.section("attnbench", sep="-")
            for line in lines:
                terminalreporter.write_line(visible(line))

    @pytest.hookimpl(optionalhook=True)  # the hook exists only with pytest-benchmark
    def pytest_benchmark_update_json(self, output_json: dict[str, Any]) -> None:
        """Add where the numbers come from.

        Not to machine_info: pytest-benchmark compares that before anything ran, and would warn of a
        difference every time.
        """
        paths = [run.path for run in self.runs if run.path is not None]
        environments = {path.name: read_meta(path)["environment"] for path in paths}
        runs = [
            {"run": name, **{fact: environment.get(fact) for fact in FACTS}}
            for name, environment in environments.items()
        ]
        if runs:
            output_json["attnbench"] = {"schema": SCHEMA, "runs": runs}
