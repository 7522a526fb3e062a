"""`attnbench wall`: the longest sequence that fits into memory."""

import sys
from collections.abc import Mapping
from functools import partial
from typing import Annotated

import typer

from ..files.errors import BadInput, shown
from . import flags
from .flags import DEFAULT_ROOT, LIMITS, Root
from .measuring import listening, measure_all, print_dry_run
from .texts import as_changes, given, ratio_of, separated

USUAL_BACKENDS = "naive,fused,sdpa"
WALL_BUDGET_S = 45.0  # with the workers' starts an answer within a minute


@flags.grouped(axes=flags.axes("seq_len"))
def wall(
    words: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    backends: flags.Backends = USUAL_BACKENDS,
    backend: flags.Imported = None,
    allow_import: flags.AllowImport = False,
    axes: Mapping[str, str | bool] = {},
    head_dim: flags.HeadDim = None,
    memory_gib: flags.MemoryGib = None,
    device: flags.OwnWhere = None,
    threads: flags.Threads = None,
    out: Root = DEFAULT_ROOT,
    dry_run: flags.DryRun = False,
    tolerance: Annotated[
        str,
        typer.Option(
            metavar="PERCENT",
            help="How close to the wall is close enough: between what fits and what fails.",
            rich_help_panel=LIMITS,
        ),
    ] = "2%",
    budget: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="For the trials of all walls; what is not tried by then stays as predicted.",
            rich_help_panel=LIMITS,
        ),
    ] = WALL_BUDGET_S,
    timeout: flags.Timeout = None,
    wait: flags.Wait = False,
    seed: flags.Seed = 0,
    quiet: flags.Quiet = False,
    as_json: flags.AsJson = False,
) -> None:
    """Find the longest sequence that fits into memory: predicted at once, then tried.

    Prints the run folder; predictions and progress go to stderr.
    """
    from ..run.start import start_run
    from ..run.suite import SuiteEntry
    from ..scenario import from_axes
    from ..scenario.selection import Selection, backends_of

    axes = {**given({"backends": backends}), **axes, **given({"head_dim": head_dim})}
    if words:
        raise BadInput(
            separated(words, sys.argv)
            or f"wall: {shown(words[0])}: wanted options, such as --heads 32 --head-dim 128; how"
            " long a context a model may have: attnbench advise MODEL"
        )
    scenario = from_axes(
        axes,
        [
            *as_changes(device, timeout, memory_gib),
            f"limits.wall_tolerance_ratio={ratio_of(tolerance)}",
            f"limits.wall_budget_s={budget}",
        ],
        backends_of(backend or ()),
        find_wall=True,
    )
    if dry_run:
        return print_dry_run([SuiteEntry(scenario=scenario, selection=Selection())], out)
    jobs = [partial(start_run, scenario, out, seed, Selection())]
    progress, options = listening(
        allow_import=allow_import, wait=wait, quiet=quiet, as_json=as_json
    )
    return measure_all(jobs, progress, options, quiet=quiet, as_json=as_json)
