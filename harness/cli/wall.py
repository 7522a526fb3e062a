"""`attnbench wall`: the longest sequence that fits into memory."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from ..api.verbs import USUAL_BACKENDS, WALL_BUDGET_S
from ..files.errors import BadInput, option, shown
from .measuring import Grid, Session, measure, print_dry_run
from .options import (
    LIMITS,
    Backends,
    MemoryGib,
    OwnWhere,
    Texts,
    Timeout,
    WallAxes,
    own,
    own_option,
)
from .texts import as_changes, ratio_of, separated


@dataclass(frozen=True, slots=True, kw_only=True)
class WallGrid(Grid):
    """A grid without lengths, which are searched for."""

    backends: Backends = USUAL_BACKENDS
    axes: WallAxes = field(default_factory=dict)


def wall(
    words: Texts = own(typer.Argument(hidden=True)),
    *,
    grid: WallGrid,
    memory_gib: MemoryGib = None,
    device: OwnWhere = None,
    session: Session,
    tolerance: str = own_option(
        "--tolerance PERCENT",
        "How close to the wall is close enough; between what fits and what fails.",
        LIMITS,
        default="2%",
    ),
    budget: float = own_option(
        "--time-budget --budget SECONDS",
        "For the trials of all walls; what is not tried by then stays as predicted.",
        LIMITS,
        default=WALL_BUDGET_S,
    ),
    timeout: Timeout = None,
) -> None:
    """Find the longest sequence that fits into memory. By formula at once, then tried.

    Prints the run folder; predictions and progress go to stderr.
    """
    from ..run.start import start_run
    from ..run.suite import SuiteEntry
    from ..scenario import Change, from_axes
    from ..scenario.selection import Selection

    if words:
        raise BadInput(
            separated(words, sys.argv)
            or f"wall: {shown(words[0])}: wanted options, such as --heads 32 --head-dim 128; how"
            " long a context a model may have: attnbench advise MODEL"
        )
    scenario = from_axes(
        grid.values,
        [
            *as_changes(device, timeout, memory_gib),
            Change(
                "limits.wall_tolerance_ratio", ratio_of(tolerance), option("tolerance", tolerance)
            ),
            Change("limits.wall_budget_s", budget, option("time_budget", budget)),
        ],
        find_wall=True,
    )
    if session.dry_run:
        return print_dry_run([SuiteEntry(scenario=scenario, selection=Selection())])
    return measure(
        lambda how: start_run(scenario, session.out, session.seed, Selection(), how),
        session.options(allow_import=grid.may_import([scenario])),
        session,
        _answers,
    )


def _answers(run: Path) -> dict[str, Any]:
    """The longest N of each search, and how it is known, as the page has them."""
    from ...reports.data.read import read_run
    from ...reports.subjects.wall import longest

    return {"walls": [longest(row)._asdict() for row in read_run(run).walls]}
