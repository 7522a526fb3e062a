"""`attnbench wall`: the longest sequence that fits into memory."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..files.errors import BadInput, Spelling, option, shown
from .fields import LIMITS, AutoDevice, Several
from .measured import BACKENDS, Backends, Measured
from .measuring import run_of
from .request import Option, Verb
from .run import separated

if TYPE_CHECKING:
    from ..run.suite import SuiteEntry
    from ..scenario import Change
    from .runs import Run

WALL_BUDGET_S = 45.0  # with the workers' starts an answer within a minute
MOST_TOLERANCE_RATIO = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class WallRequest(Measured):
    words: Annotated[Several, Option(argument=True, hidden=True, of=Spelling.SHELL)] = ()
    backends: Annotated[Backends, BACKENDS] = "naive,fused,sdpa"
    device: AutoDevice = None
    tolerance: Annotated[str | float, Option("PERCENT", LIMITS)] = "2%"
    """Precision of the wall; the gap between the longest N that fits and the shortest that fails.
    """
    time_budget: Annotated[float, Option("SECONDS", LIMITS, also=("budget",))] = WALL_BUDGET_S
    """Time for the trials of all walls; walls not reached by then stay predictions."""

    def changes(self) -> "list[Change]":
        from ..scenario import Change

        given, ratio = option("tolerance", self.tolerance), ratio_of(self.tolerance)
        return [*Measured.changes(self), Change("limits.wall_tolerance_ratio", ratio, given)]

    def answers(self, run: Path) -> Mapping[str, Any]:
        """The longest N of each search, and how it is known, as the page has them."""
        from ...reports.data.run_meta import read_run
        from ...reports.subjects.wall import longest

        return {"walls": [longest(row)._asdict() for row in read_run(run).walls]}


def ratio_of(tolerance: str | float) -> float:
    """From a percentage. Raises BadInput."""
    try:
        ratio = float(str(tolerance).strip().removesuffix("%")) / 100
    except ValueError:
        ratio = nan
    if not 0 < ratio <= MOST_TOLERANCE_RATIO:
        raise BadInput(
            f"{option('tolerance', shown(tolerance))}: wanted a percentage above 0 and up to"
            f" {100 * MOST_TOLERANCE_RATIO:.0f} %, such as 1%"
        )
    return ratio


def planned(request: WallRequest) -> "SuiteEntry":
    """Raises BadInput."""
    from ..run.suite import SuiteEntry
    from ..scenario import from_axes
    from ..scenario.selection import Selection

    axes = {"backends": request.named.names, **request.axes}
    scenario = from_axes(axes, request.changes(), find_wall=True)
    return SuiteEntry(scenario=scenario, selection=Selection())


def tell(request: WallRequest) -> int:
    """Find the longest sequence that fits into memory. Predicted by formula, then tried.

    Prints the run folder; predictions and progress go to stderr.
    """
    from .in_terminal import tell_entries

    if words := request.words:
        raise BadInput(
            separated(words, sys.argv)
            or f"wall: {shown(words[0])}: wanted options, such as --heads 32 --head-dim 128; for a"
            " model's longest context use `attnbench advise MODEL`"
        )
    return tell_entries([planned(request)], request)


def wall(request: WallRequest) -> "Run":
    """Find the longest sequence that fits into memory; `Run.walls` has the answers.

    Raises Refusal.
    """
    return run_of(request, "attnbench.wall()", [planned(request)])


VERBS = {
    "wall": Verb(
        tell=tell,
        answer=wall,
        examples=(
            "attnbench wall --heads 32 --kv-heads 8 --head-dim 128 --memory-gib 4",
            "attnbench wall --backends naive,fused --heads 8 --d-model 512 --memory-gib 1"
            " --tolerance 0.1% --time-budget 600",
            "attnbench wall --backends hf:eager,hf:sdpa --heads 8 --head-dim 64 --dtype bf16"
            " --dry-run",
        ),
        usual="backends heads kv_heads head_dim dtype causal memory_gib tolerance"
        " time_budget device dry_run runs",
    )
}
