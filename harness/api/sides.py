"""What is held against what."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..files.errors import BadInput

if TYPE_CHECKING:
    from ...reports.comparison.compare import Comparison
    from ...reports.comparison.gate import Gate


def against(base: str, run: Path, out: Path, gate: "Gate | None", **settings: Any) -> "Comparison":
    """A run against an earlier one of `out`, or against last:N. Raises Refusal."""
    from ...reports.comparison.compare import compare_runs
    from ...reports.comparison.history import compare_history
    from ..rows.names import earlier_runs, find, number_of_last

    if most := number_of_last(base):
        return compare_history(earlier_runs(run, out), most, run, gate, **settings)
    return compare_runs(find(base, out), run, gate, **settings)


def named_backend(text: str) -> str:
    """The name in rows of a backend as it was typed, such as `mine:plain` of a user's module."""
    from ...impls.discovery.names import typed_names
    from ...impls.discovery.registry import unknown

    names = typed_names(text)
    return names[-1] if unknown(names[0]) else names[0]


def runs_in(folder: str) -> list[Path]:
    """Oldest first. Raises BadInput."""
    from ..rows.run_store import runs

    found = runs(Path(folder))
    if not found:
        raise BadInput(
            f"{folder}: no runs in this folder; wanted what --runs named when the runs of one side"
            " were measured in turns"
        )
    return found


def why_nothing_is_ok(folder: str) -> str:
    """The first case that failed in these runs, and why; "" if one of any has a result."""
    from ..files.printable import visible
    from ..rows.record import FAILURES, Status
    from ..rows.run_files import read_rows

    rows = [row for run in runs_in(folder) for row in read_rows(run)]
    if any(row["status"] == Status.OK for row in rows):
        return ""
    failed = (row for row in rows if row["status"] in FAILURES)
    return next((f"{one['case']}: {visible(one['reason'])}" for one in failed), "")
