"""attnbench from Python: the runs of the command line, by the same code, without its printing.
docs/api.md has examples.

Like the command line it knows harness and reports; both are loaded when they are needed.
"""

import json
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .files.errors import BadInput, Stopped
from .rows.record import FAILURES, Status
from .store.names import find_run

if TYPE_CHECKING:
    import pandas as pd

    from .run.run_rows import RunResult
    from .run.start import RunOptions
    from .scenario import Scenario
    from .scenario.selection import Selection

Models = str | Path | Sequence[str | Path] | Mapping[str, str | Path]
Device = Literal["auto", "cpu", "cuda"]
Plan = Literal["quick", "standard", "rigorous"]
DEFAULT_ROOT = "results"
NOT_REACHED = "not reached"  # what reports call a planned case without a row


@dataclass(frozen=True, slots=True)
class Run:
    """A run's folder. Everything is read from its files when asked for, so a run that is going on
    has what it has so far.
    """

    path: Path

    @property
    def statuses(self) -> dict[str, int]:
        """How its cases, walls and studies ended, and how many did so: {"ok": 21, "oom": 2}. Raises
        BadRun.
        """
        from ..reports.data.read import read_run

        run = read_run(self.path)
        found = Counter(row["status"] for row in (*run.rows, *run.walls, *run.studies))
        found[NOT_REACHED] = len(run.missing) + len(run.missing_walls) + len(run.missing_studies)
        return {str(status): found[status] for status in (*Status, NOT_REACHED) if found[status]}

    @property
    def ok(self) -> bool:
        """Nothing is missing, and nothing crashed, failed, timed out or was incorrect. Out of
        memory is a result. Raises BadRun.
        """
        return not self.statuses.keys() & {*FAILURES, Status.INTERRUPTED, NOT_REACHED}

    def frame(self) -> "pd.DataFrame":
        """One row per case, as `attnbench.load`. Raises BadRun."""
        from ..reports.data.load import load

        return load(self.path)

    def report(self, path: str | Path | None = None) -> Path:
        """Write the page and those beside it, each whole or not at all, and give its path: unless
        told report.html in the run's folder, where a link is replaced. Raises BadRun, OSError.
        """
        from ..reports.pages.html import write_pages
        from ..reports.pages.report import open_report, page_path

        target = Path(path) if path is not None else page_path([self.path])
        write_pages(open_report([self.path]), target)
        return target

    def compare(
        self, base: "Run | str | Path", *, allow_different_devices: bool = False
    ) -> "pd.DataFrame":
        """This run against an earlier one: a row per case and metric, as in `attnbench compare
        --format json`: ratio, interval, verdict.

        Raises BadRun, and ValueError where the two cannot be compared.
        """
        import pandas as pd

        from ..reports.comparison.compare import compare_runs
        from ..reports.comparison.text import as_json

        earlier = base.path if isinstance(base, Run) else Path(base)
        found = compare_runs(
            earlier, self.path, None, allow_different_devices=allow_different_devices
        )
        return pd.DataFrame(json.loads(as_json(found))["cases"])

    def resume(
        self,
        *,
        checkpoints: Models = (),
        tokens: str | Path | None = None,
        retry_failed: bool = False,
        force: bool = False,
        allow_import: bool = False,
        wait: bool = False,
        quiet: bool = True,
    ) -> "Run":
        """Measure what the run still lacks, into the same folder; as `attnbench run --resume`.
        `checkpoints`, `tokens`: again, as for `run`, if it has not looked at all of them. Raises
        Refusal.
        """
        from .run.start import resume_run
        from .scenario.selection import Selection

        attachments = _with_models(Selection(), checkpoints, tokens).attachments
        return _measure(
            lambda options: resume_run(
                self.path,
                options,
                attachments=attachments,
                retry_failed=retry_failed,
                force=force,
            ),
            f"attnbench.open_run({self.path.name!r}).resume()",
            wait=wait,
            quiet=quiet,
            allow_import=allow_import,
        )

    def __repr__(self) -> str:
        ended = (
            ", ".join(f"{count} {status}" for status, count in self.statuses.items())
            or "nothing measured"
        )
        return f"<attnbench.Run {self.path}: {ended}>"

    def _repr_markdown_(self) -> str:
        """What a notebook shows: the answers."""
        from ..reports.formatting import markdown_cell
        from ..reports.pages.report import open_report
        from ..reports.pages.terminal import terminal_summary

        sentences = terminal_summary(open_report([self.path]))
        answers = (f"- {markdown_cell(sentence)}" for sentence in sentences)
        return "\n".join([f"`{self!r}`", "", *answers])


def run(
    scenario: str | Path | Mapping[str, Any] | None = None,
    *,
    out: str | Path = DEFAULT_ROOT,
    device: Device | None = None,
    plan: Plan | None = None,
    changes: Mapping[str, Any] | None = None,
    only: str | Sequence[str] = (),
    skip: str | Sequence[str] = (),
    checkpoints: Models = (),
    tokens: str | Path | None = None,
    seed: int = 0,
    allow_import: bool = False,
    wait: bool = False,
    quiet: bool = True,
) -> Run:
    """Measure a scenario in workers of its own, into a new folder under `out`; one row per case,
    whatever happens.

    `scenario`: a file's path, the name of a shipped one, YAML (text of more than one line), or the
    same as a mapping. `changes`: fields to set, {"limits.memory_gib": 2}, as --set does. `only`,
    `skip`: parts of case ids. `checkpoints`: trained models whose heads to look at, alone or beside
    a scenario: a path, several, or {"name": path}; `tokens`: a file with the tokens to look at them
    with (docs/checkpoints.md). `wait`: for another run on the device to end. `quiet`: print
    nothing; otherwise progress goes to stderr. `allow_import`: workers may import the modules of
    backends like "attend@my_attention", also from the current folder.

    A case that fails is a row and no exception. Raises Refusal where nothing is measured: BadInput
    (a ValueError), EnvironmentUnmet (no such device, or another run has it), NothingSelected.
    Ctrl-C raises KeyboardInterrupt once the rows are safe.
    """
    from .run.start import start_run
    from .scenario.selection import Selection, refuse_unmatched

    texts = _as_texts(device, plan, changes or {})
    selection = Selection(only=_several(only), skip=_several(skip))
    selection = _with_models(selection, checkpoints, tokens)
    with _as_arguments():
        if scenario is None:
            planned, selection = _alone(selection, texts)
        else:
            planned = _read(scenario, texts)
        refuse_unmatched([(planned, selection)])
    command = f"attnbench.run({planned.name!r})"
    return _measure(
        lambda options: start_run(planned, Path(out), seed, selection, options),
        command,
        wait=wait,
        quiet=quiet,
        allow_import=allow_import,
    )


def open_run(name: str | Path = "latest", *, out: str | Path = DEFAULT_ROOT) -> Run:
    """A run that was made before: its folder, its name under `out`, "latest", or a baseline's name.
    Raises BadInput.
    """
    return Run(find_run(str(name), Path(out)))


def _read(scenario: str | Path | Mapping[str, Any], changes: list[str]) -> "Scenario":
    from . import scenario as read

    if isinstance(scenario, Mapping):
        return read.from_mapping(scenario, "scenario", changes)
    if isinstance(scenario, str) and "\n" in scenario:
        return read.from_text(scenario, "scenario", changes)
    return read.load(scenario, changes)


def _alone(selection: "Selection", changes: list[str]) -> "tuple[Scenario, Selection]":
    """Of the models alone. Raises BadInput."""
    from .scenario.of_attachments import alone

    if not selection.attachments:
        raise BadInput(
            "scenario: nothing to run; wanted a scenario, such as 'quickstart', or checkpoints"
        )
    one = alone(selection.attachments, changes)
    return one.scenario, selection.narrowed(one.only, one.skip)


def _with_models(selection: "Selection", given: Models, tokens: str | Path | None) -> "Selection":
    """With the models to look at. Raises BadInput."""
    from .run.packs import selected

    several: list[tuple[str | None, str]]
    if isinstance(given, Mapping):
        several = [(str(name), str(path)) for name, path in given.items()]
    else:
        paths = (given,) if isinstance(given, str | Path) else given
        several = [(None, str(path)) for path in paths]
    if tokens is not None and not several:
        raise BadInput("tokens: belong to checkpoints; give the model too")
    texts = None if tokens is None else str(tokens)
    with _as_arguments():
        return selected(selection, {"checkpoint": several, "tokens": texts})


@contextmanager
def _as_arguments() -> Iterator[None]:
    """Problems name arguments where the command line has options."""
    try:
        yield
    except BadInput as error:
        if type(error) is not BadInput:  # a run that cannot be read
            raise
        raise BadInput(*map(_as_argument, error.problems)) from None


def _as_argument(problem: str) -> str:
    if again := re.findall(r"--checkpoint (\S+)=PATH", problem):
        wanted = ", ".join(f"{name!r}: PATH" for name in again)
        problem = problem.partition("--checkpoint ")[0] + f"checkpoints={{{wanted}}}"
    problem = problem.replace("give NAME=PATH", "give {NAME: PATH}")
    problem = re.sub(r"^--(only|skip) ", r"\1: ", problem)
    problem = re.sub(r"^--checkpoint:? ", "checkpoints: ", problem)
    problem = re.sub(r"^--tokens ", "tokens: ", problem)
    problem = problem.replace("add --allow-import", "add allow_import=True")
    return re.sub(r"^--(set|resume:) ", "", problem)


def _as_texts(device: Device | None, plan: Plan | None, changes: object) -> list[str]:
    """As --set takes them. JSON is YAML too. Raises BadInput."""
    if not isinstance(changes, Mapping):
        raise BadInput(
            f"changes: {type(changes).__name__}; wanted a mapping of fields to values, as"
            ' {"limits.memory_gib": 2}'
        )
    flags = {
        name: value for name, value in (("device", device), ("plan", plan)) if value is not None
    }
    return [
        f"{name}={json.dumps(value, default=str, ensure_ascii=False)}"
        for name, value in (*flags.items(), *changes.items())
    ]


def _several(patterns: str | Sequence[str]) -> tuple[str, ...]:
    return (patterns,) if isinstance(patterns, str) else tuple(patterns)


def _measure(
    job: "Callable[[RunOptions], RunResult]",
    command: str,
    *,
    wait: bool,
    quiet: bool,
    allow_import: bool,
) -> Run:
    """Run `job` inside the caller's process. A signal that ended it is raised again afterwards, for
    the caller's own handler.
    """
    from .run.start import RunOptions
    from .terminal.progress import progress, started

    listener = progress(quiet=quiet)
    options = RunOptions(
        command=[command], listener=listener, wait=wait, embedded=True, allow_import=allow_import
    )
    try:
        with started(listener), _as_arguments():
            result = job(options)
    except Stopped as stopped:
        signal.raise_signal(stopped.exit_code - 128)
        raise
    # it still leads there when the caller changes the working directory
    path = result.path.resolve()
    if (
        result.signal == signal.SIGINT
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ):
        raise KeyboardInterrupt(
            f"{path} has what was measured; attnbench.open_run({str(path)!r}).resume() goes on"
        )
    if result.signal is not None:
        signal.raise_signal(result.signal)
    return Run(path)
