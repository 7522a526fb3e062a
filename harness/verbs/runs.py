"""A run's folder in Python: what its files say, pages of it, and measuring what it lacks."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..rows.names import find
from ..rows.record import FAILURES, Status
from .fields import DEFAULT_ROOT, RunName, Runs, Salvage
from .request import Option, for_python, function

if TYPE_CHECKING:
    import pandas as pd

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
        from ...reports.data.run_meta import read_run

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

    @for_python()
    def frame(self, *, salvage: bool = False) -> "pd.DataFrame":
        """One row per case, as `attnbench.load`. `salvage`: without rows that cannot be read.
        Raises BadRun.
        """
        return load(self.path, salvage=salvage)

    @for_python()
    def walls(self, *, salvage: bool = False) -> "pd.DataFrame":
        """One row per search of the longest N that fits: the fields of its row (docs/format.md),
        and the answer, `longest_seq_len`, with how it is known, `longest_how`. Raises BadRun.
        """
        from ...reports.data.run_meta import read_run
        from ...reports.exports._frames import walls

        return walls(read_run(self.path, salvage=salvage))

    @for_python()
    def studies(self, name: str | None = None, *, salvage: bool = False) -> "pd.DataFrame":
        """One row per finding of its studies, or of the one that is named; of a study without
        findings a row with `status` and `reason`. Raises BadRun.
        """
        from ...reports.data.run_meta import read_run
        from ...reports.exports._frames import studies

        return studies(read_run(self.path, salvage=salvage), name)

    @for_python()
    def report(self, path: str | Path | None = None) -> Path:
        """Write the page, whole or not at all, and give its path: unless told report.html in the
        run's folder, where a link is replaced. Raises BadRun, OSError.
        """
        from ...reports.pages.html import write_page
        from ...reports.pages.report import open_report, page_path

        target = Path(path) if path is not None else page_path([self.path])
        write_page(open_report([self.path]), target)
        return target

    def compare(self, base: "Run | str | Path", **options: Any) -> "pd.DataFrame":
        """This run against an earlier one, as `attnbench.compare`, which has more `options`."""
        from .compare import VERBS

        found: pd.DataFrame = VERBS["compare"].function(base, self, **options)
        return found

    def resume(self, **options: Any) -> "Run":
        """Measure what the run still lacks, into the same folder. `options`: those of
        `attnbench.run` that say how: files again that it has not looked at yet, retry_failed,
        force, allow_import, threads, on, wait, quiet. Raises Refusal.
        """
        measure = import_module(f"{__package__}.run").VERBS["run"].function
        found: Run = measure(resume=self.path, **options)
        return found

    def __repr__(self) -> str:
        ended = (
            ", ".join(f"{count} {status}" for status, count in self.statuses.items())
            or "nothing measured"
        )
        return f"<attnbench.Run {self.path}: {ended}>"

    def _repr_markdown_(self) -> str:
        """What a notebook shows: the answers."""
        from ...reports.formatting import markdown_cell
        from ...reports.pages.report import open_report
        from ...reports.pages.terminal import terminal_summary

        sentences = terminal_summary(open_report([self.path]))
        answers = (f"- {markdown_cell(sentence)}" for sentence in sentences)
        return "\n".join([f"`{self!r}`", "", *answers])


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRequest:
    run: Annotated[str | Path, Option("RUN", help=RunName, argument=True)] = "latest"
    runs: Runs = DEFAULT_ROOT


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    run: Annotated[str | Path | Sequence[str | Path], Option("RUN", help=RunName, argument=True)]
    salvage: Salvage = False


@function
def open_run(request: OpenRequest) -> Run:
    """A run that was made before. Raises BadInput."""
    return Run(find(str(request.run), request.runs))


@function
def load(request: LoadRequest) -> "pd.DataFrame":
    """A table with one row per planned case of a run's folder, whose name is in its `attrs`;
    several folders get a column `run`.

    docs/format.md says what each column is, "Columns of a frame" what is computed. `latency_ms` is
    the typical latency, `block_ms` keeps the raw samples. Missing is NaN or NA, never 0. A case
    that was planned and never started has the status "not reached". Raises BadRun.
    """
    from ...reports.data.load import load as load_frame

    return load_frame(request.run, salvage=request.salvage)
