"""`attnbench run`: scenarios, a grid given by options, or what a run lacks."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from ..files.errors import BadInput
from ..run.packs import opted, run_options, selected
from . import completion
from .measuring import (
    Grid,
    Session,
    measure,
    measure_several,
    planned_entries,
    print_dry_run,
    read_scenarios,
)
from .options import (
    DEVICES,
    EARLIER,
    SHAPE,
    WHAT,
    MeasureNames,
    MemoryGib,
    PlanName,
    Several,
    Texts,
    Timeout,
    Where,
    argument,
    own,
    own_option,
    switch,
)
from .texts import as_changes

if TYPE_CHECKING:
    from ..run.start import RunOptions
    from ..run.suite import SuiteEntry
    from ..scenario import Change
    from ..scenario.selection import Selection

SCENARIOS = argument(
    "SCENARIO",
    "Shipped scenarios or YAML files, also lists of several; claims are all of claims_*.",
    completion.scenarios,
)
OfPacks = Annotated[Mapping[str, Any], Several(run_options())]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelGrid(Grid):
    """A grid, also of a model's attention."""

    model: str | None = own_option(
        "--model MODEL",
        "A model's attention, by name or config.json; a name is one of attnbench list models, a"
        " config.json Hugging Face's, or its folder. In place of heads and widths.",
        SHAPE,
        completion.models,
    )
    phase: str | None = own_option(
        "--phase prefill|chunk|decode|verify|training",
        "With --model: --seq-len tokens at once, the last --queries of them, one token after so"
        " many, or all with gradients.",
        SHAPE,
    )
    queries: int | None = own_option(
        "--queries COUNT",
        "With --model: tokens that phase chunk (512 if not given) or verify (5) computes.",
        SHAPE,
        min=1,
    )
    tp: int | None = own_option(
        "--tp COUNT",
        "With --model: devices that share its heads (tensor parallelism).",
        SHAPE,
        min=1,
    )
    baseline: str | None = own_option(
        "--against --baseline BACKEND",
        "Backend that ratios are taken against; the first if not given.",
        WHAT,
        completion.one_backend,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Which cases."""

    only: Texts = own_option(
        "--only PATTERN", "Measure only cases whose id matches; repeatable.", WHAT
    )
    skip: Texts = own_option(
        "--skip PATTERN", "Leave out cases whose id matches; repeatable.", WHAT
    )
    shard: str | None = own_option(
        "--shard I/N",
        "Measure only the I-th of N parts of the plan, for N devices or jobs; attnbench merge makes"
        " one run of them.",
        DEVICES,
    )

    def selection(self) -> "Selection":
        """Raises BadInput."""
        from ..scenario.selection import Selection
        from ..scenario.shards import read_shard

        return Selection(
            only=tuple(self.only or ()),
            skip=tuple(self.skip or ()),
            shard=None if self.shard is None else read_shard(self.shard),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """Fields of the scenario that are set."""

    sets: Texts = own_option(
        "--set A.B=C", "Change a field of the scenario; repeatable.", WHAT, completion.changes
    )
    device: Where = None
    timeout: Timeout = None
    memory_gib: MemoryGib = None
    plan: PlanName = None
    measure: MeasureNames = None

    @property
    def changes(self) -> "list[Change]":
        from ..scenario import read_change

        own = as_changes(self.device, self.timeout, self.memory_gib, self.plan, self.measure)
        return [*map(read_change, self.sets or []), *own]


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """A run that is resumed."""

    resume: str | None = own_option(
        "--resume RUN", "Measure what this run still lacks.", EARLIER, completion.runs
    )
    retry_failed: bool = switch(
        "--retry-failed", "With --resume: crashed, failed and timed-out cases again.", EARLIER
    )
    force: bool = switch("--force", "With --resume: even in another environment.", EARLIER)


def run(
    scenarios: Texts = own(SCENARIOS),
    *,
    grid: ModelGrid,
    part: Part,
    changed: Changed,
    of_packs: OfPacks,
    earlier: Earlier,
    session: Session,
) -> None:
    """Measure scenarios, or shapes and backends of your own.

    Prints the folder of each run; progress goes to stderr. Of several scenarios, what has finished
    is left as it is, and what was interrupted goes on.
    """
    several = part.only or part.skip or part.shard
    planned = scenarios or grid.values or changed.changes or several
    if earlier.resume is not None and (planned or session.dry_run):
        raise BadInput(
            "--resume: the run is measured as it was planned; leave out scenarios, axes,"
            " --backends, --set, --only, --skip, --shard, --plan, --device, --timeout, --memory-gib"
            " and --dry-run"
        )
    if earlier.resume is None and (earlier.retry_failed or earlier.force):
        raise BadInput("--retry-failed and --force belong to --resume RUN")
    options = session.options(allow_import=grid.allow_import)
    options = opted(options, of_packs, dry_run=session.dry_run)
    selection = selected(part.selection(), of_packs)
    if earlier.resume is not None:
        return _resume(earlier, earlier.resume, selection, session, options)
    entries, are_several = _planned(scenarios or [], grid, changed.changes, selection)
    if session.dry_run:
        return print_dry_run(entries)
    may_import = grid.may_import(entry.scenario for entry in entries)
    options = replace(options, allow_import=may_import)
    if are_several:
        return measure_several(entries, options, session)
    from ..run.start import start_run

    (one,) = entries
    out, seed = session.out, session.seed
    return measure(
        lambda how: start_run(one.scenario, out, seed, one.selection, how), options, session
    )


def _resume(
    earlier: Earlier, run: str, selection: "Selection", session: Session, options: "RunOptions"
) -> None:
    from ..rows.names import find
    from ..run.start import resume_run

    path = find(run, session.out, unfinished=True)
    job = partial(resume_run, path, attachments=selection.attachments)
    how = partial(job, retry_failed=earlier.retry_failed, force=earlier.force)
    return measure(how, options, session)


def _planned(
    scenarios: list[str], grid: Grid, changes: "list[Change]", selection: "Selection"
) -> "tuple[list[SuiteEntry], bool]":
    """What is measured, and whether it is a list of scenarios. Raises BadInput."""
    from ..scenario.of_attachments import alone, beside
    from ..scenario.selection import refuse_unmatched

    attachments, own = selection.attachments, None
    if attachments and not (scenarios or grid.values):
        entries, are_several = [alone(attachments, changes)], False
    else:
        entries, are_several = read_scenarios(scenarios, grid.values, changes)
        own = beside(attachments, changes) if attachments and are_several else None
    planned = planned_entries(entries, selection, own)
    refuse_unmatched((entry.scenario, entry.selection) for entry in planned)
    return planned, are_several
