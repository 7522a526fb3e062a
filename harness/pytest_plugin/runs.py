"""The runs behind a pytest session: one for each scenario file, by the command line's own code, lap
by lap as the tests ask for it.
"""

import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..cases import Group
from ..errors import Refusal, Stopped, StoreError
from ..record import SCHEMA, Record, Status
from ..scenario import Scenario
from ..store import read_meta
from .settings import Settings

if TYPE_CHECKING:
    from ..listener import Listener
    from ..run.session import RunSession

FACTS = (
    "device",
    "device_name",
    "device_uuid",
    "driver",
    "cuda",
    "cpu",
    "threads",
    "torch",
    "attnbench",
)
"""Of the environment, for readers of pytest-benchmark's JSON."""


class Kept:
    """What a run has said; another listener tells it on."""

    def __init__(self, teller: "Listener") -> None:
        self.records: dict[str, Record] = {}
        self.remarks: list[str] = []
        self._teller = teller
        self.running = teller.running

    def begin(
        self, path: Path, planned: Mapping[str, int], done: int, remarks: Sequence[str]
    ) -> None:
        self.remarks.extend(remarks)
        self._teller.begin(path, planned, done, remarks)

    def finished(self, record: Record) -> None:
        if record.kind == "latency":
            self.records[record.id] = record
        self._teller.finished(record)

    def remark(self, text: str) -> None:
        self.remarks.append(text)


class FileRun:
    """The run of one scenario file: opened for its first test, closed after its last. `refusal`:
    why it measures nothing more.
    """

    def __init__(
        self, scenario: Scenario, settings: Settings, command: Sequence[str], teller: "Listener"
    ) -> None:
        self.kept = Kept(teller)
        self.refusal: Refusal | None = None
        self.path: Path | None = None
        self.statuses: Counter[str] = Counter()
        self._scenario = scenario
        self._settings = settings
        self._command = command
        self._session: RunSession | None = None
        self._stack = ExitStack()
        self._waiting: set[str] = set()
        self._over: set[str] = set()
        self._part_of: dict[str, tuple[Group, ...]] = {}

    def open(self, case_id: str, chosen: Iterable[str], *, timed: bool) -> None:
        """Make it ready to measure a case, and the other chosen ones, unless it is. Raises Refusal.

        Without `timed` they are checked and weighed only.
        """
        if self.refusal is not None:
            raise self.refusal
        if self._session is not None:
            return
        from ..run.start import RunOptions, open_run
        from ..selection import Selection

        scenario = (
            self._scenario if timed else self._scenario.model_copy(update={"measure": ("memory",)})
        )
        self._waiting = set(chosen) - self._over | {case_id}
        selection = Selection(ids=frozenset(self._waiting))
        options = RunOptions(command=self._command, listener=self.kept, wait=self._settings.wait)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "default"
                )  # torch and its friends warn when imported; that is no failure of a case
                self._session = self._stack.enter_context(
                    open_run(scenario, self._settings.root, 0, selection, options)
                )
        except Stopped as stopped:
            self.refusal = stopped
            pass_on(stopped.exit_code - 128)
        except Refusal as refusal:
            self.refusal = refusal
            raise
        else:
            self.path, self.statuses = self._session.result.path, self._session.result.statuses
            self._part_of = {
                case.id: part
                for part in self._session.parts
                for group in part
                for case in group.cases
            }
            self._take(self._session.begin)

    def record(self, case_id: str) -> Record:
        """What came of a case; the first one of a lap has all of it measured. Raises Refusal."""
        if case_id not in self.kept.records:
            session = self._session
            if session is None or case_id not in self._part_of:
                raise self.refusal or Refusal("its run began without it")
            self._take(lambda: session.measure(self._part_of[case_id]))
        return self.kept.records[case_id]

    def turn_over(self, case_id: str) -> None:
        """The test of a case has ended, whatever came of it."""
        self._over.add(case_id)
        self._waiting.discard(case_id)
        if not self._waiting:
            self.close()

    def make_way(self) -> None:
        """Measure all that is still waited for and close, so that another run can have the
        device.
        """
        for case_id in self._part_of:
            if case_id in self._waiting and self._session is not None:
                self.record(case_id)
        self.close()

    def close(self) -> None:
        """The end. Cases that were planned and not reached get rows that say so; `attnbench run
        --resume` takes them up again.
        """
        session, self._session = self._session, None
        if session is None:
            return
        self.refusal = Refusal("its run has ended")
        session.signals.listen()
        try:
            session.stop("its test did not run")
        except StoreError as error:
            self.kept.remark(str(error))
        finally:
            self._stack.close()
        if session.signals.received is not None:
            pass_on(session.signals.received)

    def _take(self, step: Callable[[], None]) -> None:
        """One step of the run, during which signals are its affair."""
        assert self._session is not None
        self._session.signals.listen()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("default")
                step()
        except BaseException as error:
            self._break_off(error)
            raise
        self._session.signals.ignore()

    def _break_off(self, error: BaseException) -> None:
        """End the run for what was raised in a step: a signal's Interrupted, a full disk, a time
        limit of pytest's, our own bug.
        """
        from ..process.worker_process import Interrupted

        session, self._session = self._session, None
        assert session is not None
        self.refusal = (
            error
            if isinstance(error, Refusal)
            else Refusal(f"its run ended early, by {type(error).__name__}")
        )
        if not isinstance(error, Interrupted | StoreError):
            with suppress(StoreError):  # those rows are then missing, as after a crash
                session.stop(f"pytest ended it by {type(error).__name__}")
        self._stack.__exit__(type(error), error, error.__traceback__)
        if isinstance(error, Interrupted):
            pass_on(session.result.signal or signal.SIGINT)


def pass_on(number: int) -> None:
    """Let a signal that a run has held back do what it does in this process: Ctrl-C then ends
    pytest in pytest's way.
    """
    signal.raise_signal(number)
    raise KeyboardInterrupt


class Runs:
    """All runs of a session, one of them open at a time."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        from ..terminal import LiveProgress, QuietProgress, lines_console

        self._settings = settings
        self._command = ["pytest", *map(str, config.invocation_params.args)]
        self._teller = (
            LiveProgress(lines_console())
            if config.getoption("capture") == "no"
            else QuietProgress()
        )
        self._runs: list[FileRun] = []
        self.notes: list[str] = []

    def new(self, scenario: Scenario) -> FileRun:
        run = FileRun(scenario, self._settings, self._command, self._teller)
        self._runs.append(run)
        return run

    def give_way_to(self, run: FileRun) -> None:
        """A device has one run at a time, also where the tests of several files come mixed."""
        for other in self._runs:
            if other is not run:
                other.make_way()

    def close(self) -> None:
        for run in self._runs:
            run.close()

    def summary(self) -> list[str]:
        """What to say at the end of the session."""
        from ..terminal import counts

        lines = []
        for run in self._runs:
            if run.path is not None:
                path = (
                    run.path.relative_to(Path.cwd())
                    if run.path.is_relative_to(Path.cwd())
                    else run.path
                )
                verb = "run --resume" if run.statuses[Status.INTERRUPTED] else "report"
                lines += [
                    f"{counts(run.statuses)}; next: attnbench {verb} {path}",
                    *(f"note: {remark}" for remark in run.kept.remarks),
                ]
        return [*lines, *(f"note: {note}" for note in self.notes)]

    def origins(self) -> dict[str, Any] | None:
        """Run ids and what they were measured on; None without a run."""
        opened = [
            (run.path.name, read_meta(run.path)["environment"])
            for run in self._runs
            if run.path is not None
        ]
        runs = [
            {"run": name, **{fact: environment.get(fact) for fact in FACTS}}
            for name, environment in opened
        ]
        return {"schema": SCHEMA, "runs": runs} if runs else None
