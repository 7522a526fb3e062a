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
    from ..store.names import earlier_runs, find_run, number_of_last

    if most := number_of_last(base):
        return compare_history(earlier_runs(run, out), most, run, gate, **settings)
    return compare_runs(find_run(base, out), run, gate, **settings)


def runs_in(folder: str) -> list[Path]:
    """Oldest first. Raises BadInput."""
    from ..store.run_store import runs

    found = runs(Path(folder))
    if not found:
        raise BadInput(
            f"{folder}: no runs in this folder; wanted what --runs named when the runs of one side"
            " were measured in turns"
        )
    return found
