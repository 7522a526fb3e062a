"""The runs of a pytest session: one per scenario file, measured part by part as its tests ask.

And pytest's options and ini settings for them.
"""

import re
import shlex
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest

from ..cases.case import Group
from ..files.errors import BadInput, Refusal, Stopped, StoreError
from ..files.printable import visible
from ..rows.names import number_of_last
from ..rows.record import FAILURES, Record, Status
from ..rows.run_files import SCHEMA, read_meta
from ..run.listener import Begun, Listener
from ..scenario import Scenario
from .gate import FAILED, base_of, judged, margins_of

if TYPE_CHECKING:
    from ..run.session import RunSession
    from ..verbs.margins import Margins

FACTS = (
    *("device", "device_name", "device_uuid", "driver", "cuda", "cpu", "threads", "torch"),
    "attnbench",
)
"""Of the environment, for readers of pytest-benchmark's JSON."""
EXPECTABLE = (Status.OOM, Status.PREDICTED_OOM, *sorted(FAILURES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`changes`: of every scenario, in the form of the command line's --set. `imports_of`: the
    project whose modules workers may import. `margins`: by how much no case may be slower than in
    the runs `against`; empty without a gate.
    """

    changes: tuple[str, ...]
    root: Path
    expected: frozenset[Status]
    wait: bool
    imports_of: Path | None
    margins: "Margins"
    against: tuple[str, ...]


def settings_of(config: pytest.Config) -> Settings:
    """The command line wins over the ini file. Raises UsageError."""

    def option(name: str) -> str:
        name = f"attnbench_{name.replace('-', '_')}"
        return str(config.getoption(name) or config.getini(name) or "")

    fields = {
        "device": option("device"),
        "limits.timeout_s": config.getoption("attnbench_timeout"),
        "plan": option("plan"),
        "measure": f"[{names}]" if (names := option("measure")) else "",
    }
    out = config.getoption("attnbench_out")
    default = config.rootpath / (config.getini("attnbench_out") or "results")
    slower, name = option("fail-slower"), "attnbench_allow_import"
    may_import = config.getoption(name) or config.getini(name)
    try:
        margins = margins_of(slower) if slower else {}
    except BadInput as error:
        raise pytest.UsageError(str(error)) from None
    if config.getoption("attnbench_against") and not margins:
        raise pytest.UsageError("--attnbench-against belongs to --attnbench-fail-slower")
    return Settings(
        changes=(
            *config.getini("attnbench_set"),
            *config.getoption("attnbench_set"),
            *(f"{field}={value}" for field, value in fields.items() if value),
        ),
        root=Path(out).absolute() if out else default,
        expected=expected_statuses(option("expect")),
        wait=config.getoption("attnbench_wait"),
        imports_of=config.rootpath if may_import else None,
        margins=margins,
        against=words_of(option("against")),
    )


def words_of(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def expected_statuses(text: str) -> frozenset[Status]:
    """From "oom,timeout". Expecting oom includes predicted_oom. Raises UsageError."""
    words = words_of(text)
    for word in words:
        if word not in EXPECTABLE:
            there_are = ", ".join(EXPECTABLE)
            raise pytest.UsageError(
                f"--attnbench-expect: no failing status {word!r}; there are: {there_are}"
            )
    predicted = {Status.PREDICTED_OOM} if Status.OOM in words else set()
    return frozenset(map(Status, words)) | predicted


def with_pytest_options(text: object) -> str:
    """A message of the command line, for pytest's terminal: its options have other names there."""
    safe = visible(str(text), lines=True)
    return re.sub(
        r"(?<![\w-])--(set|device|out|timeout|wait|plan|measure|allow-import)\b",
        r"--attnbench-\1",
        safe,
    )


def folders_of(project: Path) -> tuple[str, ...]:
    """From where the tests of a project can import."""
    return tuple(dict.fromkeys(str(Path(one).absolute()) for one in (str(project), *sys.path)))


def shortest(path: Path) -> Path:
    """From the current folder, as messages name it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


class FileRun(Listener):
    """The run of one scenario file: opened for its first test, closed after its last.

    It keeps the records and remarks of its run, and passes what it hears on to another listener.
    `refusal`: why it measures nothing more. `shares_s`: of the time that was spent on cases
    together, each case's. `base`: the stored run, or last:N, that it is compared with.
    """

    def __init__(
        self,
        scenario: Scenario,
        settings: Settings,
        command: Sequence[str],
        listener: Listener,
        base: str | None,
    ) -> None:
        self.base = base
        self.shares_s: dict[str, float] = {}
        self.records: dict[str, Record] = {}
        self.remarks: list[str] = []
        self._listener = listener
        self.refusal: Refusal | None = None
        self.path: Path | None = None
        self.statuses: Counter[str] = Counter()
        self._scenario = scenario
        self._settings = settings
        self._command = command
        self._session: RunSession | None = None
        self._stack = ExitStack()
        self._waiting: set[str] = set()
        self._done: set[str] = set()
        self._part_of: dict[str, tuple[Group, ...]] = {}

    def begin(self, run: Begun) -> None:
        self.remarks.extend(run.remarks)
        self._listener.begin(run)

    def running(self, what: str, phase: str) -> None:
        self._listener.running(what, phase)

    def finished(self, record: Record) -> None:
        if record["kind"] == "latency":
            self.records[record.id] = record
        self._listener.finished(record)

    def remark(self, text: str) -> None:
        self.remarks.append(text)

    def open(self, case_id: str, selected: Iterable[str], *, timed: bool) -> None:
        """Open the run for a case and the other selected ones, unless it is open. Raises Refusal.

        Without `timed` only correctness and memory are measured.
        """
        if self.refusal is not None:
            raise self.refusal
        if self._session is not None:
            return
        from ..run.start import RunOptions, open_run
        from ..scenario.selection import Selection

        scenario = self._scenario
        if not timed:
            scenario = scenario.model_copy(update={"measure": ("memory",)})
        self._waiting = set(selected) - self._done | {case_id}
        selection = Selection(ids=frozenset(self._waiting))
        project = self._settings.imports_of
        options = RunOptions(
            command=self._command,
            listener=self,
            wait=self._settings.wait,
            embedded=True,
            allow_import=folders_of(project) if project else False,
        )
        try:
            with warnings.catch_warnings():
                # torch and other packages warn when they are imported; no case fails for that
                warnings.simplefilter("default")
                opened = open_run(scenario, self._settings.root, 0, selection, options)
                self._session = self._stack.enter_context(opened)
        except Stopped as stopped:
            self.refusal = stopped
            raise_signal(stopped.exit_code - 128)
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
            self._step(self._session.begin)

    def record(self, case_id: str) -> Record:
        """The result of a case; the first case of a part has all of it measured. Raises Refusal."""
        if case_id not in self.records:
            session = self._session
            if session is None or case_id not in self._part_of:
                raise self.refusal or Refusal("its run began without it")
            begun = monotonic()
            self._step(lambda: session.measure(self._part_of[case_id]))
            self._share(monotonic() - begun, self._part_of[case_id])
        return self.records[case_id]

    def _share(self, spent_s: float, part: Sequence[Group]) -> None:
        """Divide the time of a part among its cases, by what each has taken in the workers."""
        cases = [case.id for group in part for case in group.cases]
        own_s = [self.records[case]["spent_s"] or 0.0 for case in cases]
        for case, one_s in zip(cases, own_s, strict=True):
            ratio = one_s / sum(own_s) if any(own_s) else 1 / len(cases)
            self.shares_s[case] = spent_s * ratio

    def case_done(self, case_id: str) -> None:
        """The test of a case has ended, with whatever result."""
        self._done.add(case_id)
        self._waiting.discard(case_id)
        if not self._waiting:
            self.close()

    def finish(self) -> None:
        """Measure the remaining cases and close, so that another run can have the device."""
        for case_id in self._part_of:
            if case_id in self._waiting and self._session is not None:
                self.record(case_id)
        self.close()

    def close(self) -> None:
        """End the run. Planned cases that were not reached get rows that say so."""
        if (session := self._session) is None:
            return
        self.refusal = Refusal("its run has ended")
        session.signals.listen()
        self._end(session, "its test did not run")
        if session.signals.received is not None:
            raise_signal(session.signals.received)

    def _step(self, step: Callable[[], None]) -> None:
        """One step of the run, during which the run handles signals."""
        session = self._session
        assert session is not None
        session.signals.listen()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("default")
                step()
        except BaseException as error:  # a signal's, a full disk, a time limit of pytest's, our bug
            name = type(error).__name__
            ended = Refusal(f"its run ended early, by {name}")
            self.refusal = error if isinstance(error, Refusal) else ended
            self._end(session, f"pytest ended it by {name}", error)
            raise
        session.signals.ignore()

    def _end(self, session: "RunSession", why: str, error: BaseException | None = None) -> None:
        """Close the run; a signal that ended it is delivered."""
        from ..process.worker_process import Interrupted

        self._session = None
        try:
            if not isinstance(error, Interrupted | StoreError):
                session.stop(why)
        except StoreError as failure:  # those rows are missing then, as after a crash
            self.remark(str(failure))
        finally:
            self._stack.__exit__(type(error) if error else None, error, None)
        if isinstance(error, Interrupted):
            raise_signal(session.result.signal or signal.SIGINT)


def raise_signal(number: int) -> None:
    """Deliver a signal that a run has held back: Ctrl-C then ends pytest in pytest's way."""
    signal.raise_signal(number)
    raise KeyboardInterrupt


class Runs:
    """All runs of a session, one of them open at a time."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        from ..terminal.progress import LiveProgress, lines_console

        self._settings = settings
        self._command = ["pytest", *map(str, config.invocation_params.args)]
        uncaptured = config.getoption("capture") == "no"
        self._listener = LiveProgress(lines_console()) if uncaptured else Listener()
        self._runs: list[FileRun] = []
        self.notes: list[str] = []
        self._judged: list[str] = []
        self.exit_code = 0

    def new(self, scenario: Scenario) -> FileRun:
        """Raises BadInput if no run of the scenario is there to compare with, and one is wanted."""
        settings = self._settings
        wanted = bool(settings.margins)
        base = base_of(scenario.name, settings.against, settings.root) if wanted else None
        run = FileRun(scenario, settings, self._command, self._listener, base)
        self._runs.append(run)
        return run

    def finish_others(self, run: FileRun) -> None:
        """A device has one run at a time, also if the tests of several files are mixed."""
        for other in self._runs:
            if other is not run:
                other.finish()

    def close(self) -> None:
        for run in self._runs:
            run.close()

    def judge(self) -> None:
        """Compare the runs with those that they are to be compared with."""
        for run in self._runs:
            if run.path is not None and run.base is not None:
                base = run.base if number_of_last(run.base) else str(shortest(Path(run.base)))
                settings, paths = self._settings, [base, str(shortest(run.path))]
                code, lines = judged(run.base, run.path, settings.root, settings.margins, paths)
                self._judged += lines
                codes = (code, self.exit_code)
                self.exit_code = FAILED if FAILED in codes else max(codes)

    def summary(self) -> list[str]:
        """The lines at the end of the session."""
        from ..terminal.progress import counts

        lines = []
        for run in self._runs:
            if run.path is not None:
                verb = "run --resume" if run.statuses[Status.INTERRUPTED] else "report"
                path = shlex.quote(str(shortest(run.path)))
                lines.append(f"{counts(run.statuses)}; next: attnbench {verb} {path}")
                lines += [f"note: {remark}" for remark in run.remarks]
        return [*lines, *(f"note: {note}" for note in self.notes), *self._judged]

    def origins(self) -> dict[str, Any] | None:
        """The ids of the runs and their machines; None without a run."""
        paths = [run.path for run in self._runs if run.path is not None]
        environments = {path.name: read_meta(path)["environment"] for path in paths}
        runs = [
            {"run": name, **{fact: environment.get(fact) for fact in FACTS}}
            for name, environment in environments.items()
        ]
        return {"schema": SCHEMA, "runs": runs} if runs else None
