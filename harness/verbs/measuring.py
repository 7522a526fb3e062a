"""A run that a verb measures, for a terminal or for a caller in Python."""

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from sysconfig import get_paths
from typing import TYPE_CHECKING, Any

from ..files.errors import Spelling, Stopped, spelled
from ..process.child import AllowImport
from .measured import may_import

if TYPE_CHECKING:
    from ..run.listener import Begun, Listener
    from ..run.run_rows import RunResult
    from ..run.start import RunOptions
    from ..run.suite import SuiteEntry
    from .measured import Measured
    from .runs import Run

Row = Mapping[str, Any]
Job = Callable[["RunOptions"], "RunResult"]


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """How the runs of a request are measured. `call`: as run.json keeps it; that of the shell if
    empty. `folders`: from which workers may import, beside the current one. `engine`: devices
    elsewhere. `listener`: in place of a bar.
    """

    request: Any
    spelling: Spelling = Spelling.SHELL
    call: Sequence[str] = ()
    allow_import: AllowImport = False
    folders: Iterable[str] = ()
    engine: Any = None
    listener: "Listener | None" = None

    @classmethod
    def python(cls, request: Any, call: str) -> "How":
        return cls(request=request, spelling=Spelling.PYTHON, call=[call])

    @classmethod
    def of(cls, request: "Measured", entries: "Sequence[SuiteEntry]", call: str = "") -> "How":
        """Raises BadInput if a scenario names modules that workers may not import."""
        return cls(
            request=request,
            spelling=Spelling.PYTHON if call else Spelling.SHELL,
            call=[call] if call else (),
            allow_import=may_import(request, entries),
            folders=request.named.folders,
            engine=request.engine(),
        )

    @property
    def talks(self) -> bool:
        return not (self.request.quiet or self.request.json)

    def wait_until_idle(self) -> None:
        from ..terminal.idle import wait_until_idle

        wait_until_idle(self.request.wait_idle, quiet=not self.talks)

    @contextmanager
    def options(self) -> Iterator["RunOptions"]:
        """For runs in this process. Raises Refusal."""
        from ..run.start import RunOptions
        from ..terminal.progress import progress

        request, lines = self.request, getattr(self.request, "json_lines", False)
        embedded = self.spelling is not Spelling.SHELL
        listener = self.listener or progress(quiet=not self.talks, as_json=request.json and lines)
        _spell(listener, self.spelling)
        if on_row := getattr(request, "on_row", None):
            _tell_rows(listener, on_row)
        with (
            worker_variables(getattr(request, "threads", None), self.folders),
            signals_passed_on() if embedded else nullcontext(),
        ):
            yield RunOptions(
                command=self.call or ["attnbench", *sys.argv[1:]],
                listener=listener,
                wait=request.wait,
                embedded=embedded,
                allow_import=self.allow_import,
                engine=self.engine,
            )

    @contextmanager
    def started(self) -> Iterator["RunOptions"]:
        """With what is seen from the beginning."""
        from ..terminal.progress import started

        with self.options() as options, started(options.listener):
            yield options

    def measured(self, job: Job) -> "RunResult":
        """Once the cores are idle, if that is asked for. Raises Refusal."""
        self.wait_until_idle()
        with self.started() as options:
            return job(options)


def _spell(listener: "Listener", spelling: Spelling) -> None:
    """Its remarks name options as the user does."""
    begin, remark = listener.begin, listener.remark

    def begun(run: "Begun") -> None:
        begin(run._replace(remarks=[spelled(one, spelling) for one in run.remarks]))

    listener.begin = begun  # type: ignore[method-assign]
    listener.remark = lambda text: remark(spelled(text, spelling))  # type: ignore[method-assign]


def _tell_rows(listener: "Listener", on_row: Callable[[Row], object]) -> None:
    first = listener.finished

    def finished(record: Any) -> None:
        first(record)
        on_row(dict(record.row))

    listener.finished = finished  # type: ignore[method-assign]


@contextmanager
def worker_variables(threads: int | None = None, folders: Iterable[str] = ()) -> Iterator[None]:
    """Of the environment, for the workers that start meanwhile: torch's threads, and folders behind
    all others that they import from.
    """
    before = dict(os.environ)
    path = before.get("PYTHONPATH", "").split(os.pathsep)
    found = {*path, str(Path.cwd()), *get_paths().values()}  # without these
    more = [one for one in dict.fromkeys(folders) if one not in found]
    changed = {} if threads is None else {"OMP_NUM_THREADS": str(threads)}
    if more:
        changed["PYTHONPATH"] = os.pathsep.join([*filter(None, path), *more])
    os.environ.update(changed)
    try:
        yield
    finally:
        for name in changed:
            del os.environ[name]
        os.environ.update({name: before[name] for name in changed if name in before})


@contextmanager
def torch_threads_kept() -> Iterator[None]:
    """What is measured in this process sets them; the caller's number comes back."""
    import torch

    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


# ---- in Python -----------------------------------------------------------------------------------


def started_job(entry: "SuiteEntry", request: "Measured") -> Job:
    from ..run.start import start_run

    return partial(start_run, entry.scenario, request.runs, request.seed, entry.selection)


def run_of(
    request: "Measured", call: str, entries: "Sequence[SuiteEntry]", job: Job | None = None
) -> "Run":
    """Measure the first of them, or what `job` does."""
    from .runs import Run

    how = How.of(request, entries, call)
    return Run(ended(how.measured(job or started_job(entries[0], request)), how))


def ended(result: "RunResult", how: How) -> Path:
    """The run's folder. A signal that ended it is raised again, for the caller's own handler."""
    from ..terminal.progress import say

    if result.few_threads and how.talks:
        say(spelled(result.few_threads, how.spelling), stderr=True)
    path = result.path.resolve()  # it still leads there when the caller changes the directory
    if (
        result.signal == signal.SIGINT
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ):
        raise KeyboardInterrupt(
            f"{path} has what was measured; attnbench.open_run({str(path)!r}).resume() goes on"
        )
    if result.signal is not None:
        signal.raise_signal(result.signal)
    return path


@contextmanager
def signals_passed_on() -> Iterator[None]:
    """One that came before there was anything to end in order."""
    try:
        yield
    except Stopped as stopped:
        signal.raise_signal(stopped.exit_code - 128)
        raise
